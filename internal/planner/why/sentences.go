package why

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
)

// sentence is what is said for one answer of the planner: its code, and a template for the numbers and names.
type sentence struct{ code, text string }

func (s sentence) with(args ...any) model.Reason {
	return model.Reason{Code: s.code, Message: fmt.Sprintf(s.text, args...)}
}

// said reports whether there is a reason.
func said(r model.Reason) bool { return r.Code != "" }

// after puts words before the message of a reason.
func after(words string, r model.Reason) model.Reason {
	r.Message = words + r.Message
	return r
}

// The table of all sentences, by what they are about. docs/reference/reasons.md explains the codes.
var (
	// Why a group takes no launches, regardless of its limits.
	excluded = sentence{model.CodeClosed, "no node can hold its pods (%s)"}
	closed   = sentence{model.CodeClosed, "closed: %s"}
	cooling  = sentence{model.CodeCoolingDown, "cooling down for %s"}
	conflict = sentence{model.CodeInvalidLimits, "minReplicas %d is above maxReplicas %d; the operator stops " +
		"reconciling the whole cluster, so the plan leaves the group as it is"}
	gated = sentence{model.CodeScaleGate, "group %s may not grow now, by its scaleGate %s"}

	// The limit that prevents one more replica of a group.
	atMax      = sentence{model.CodeAtMax, "group %s is at its maximum of %d (%s)"}
	atBound    = sentence{model.CodeMaxWorkers, "all groups together are at their maximum of %d"}
	overBound  = sentence{model.CodeMaxWorkers, "all groups together may have %d (%s); a replica of group %s is %s"}
	atQuota    = sentence{model.CodeQuota, "group %s is at its quota: %s"}
	promisedTo = sentence{model.CodePoolPromised, "group %s can have no more pods: what is free on %s " +
		"is promised to %s, which come first"}
	poolFull    = sentence{model.CodePoolCeiling, "%s cannot hold more pods of group %s: %s%s"}
	triedInPool = sentence{model.CodeTrying, "known nodes hold no more pods of group %s, and nothing shows what new " +
		"nodes of %s have; Heliostat tries %s at a time there"}
	tried = sentence{model.CodeTrying, "nothing shows that a node can hold a pod of group %s (%s); " +
		"Heliostat tries %s at a time until one has joined"}
	groupInFlight = sentence{model.CodeConservative, "%s allows group %s %s on the way at once (has %d)"}
	allInFlight   = sentence{model.CodeInFlight, "maxInFlight allows all groups together %s on the way at once " +
		"(have %d)"}
	behind = sentence{model.CodeInFlight, "group %s has %s on the way; earlier demand is waiting for %s"}

	// The limit that prevents more than a few pods of a group.
	maxIs        = sentence{model.CodeAtMax, "its maximum is %d (%s)"}
	boundIs      = sentence{model.CodeMaxWorkers, "all groups together may have %d (%s)"}
	quotaIs      = sentence{model.CodeQuota, "%s"}
	promisedMore = sentence{model.CodePoolPromised, "more room on its nodes is promised to %s"}
	poolsHold    = sentence{model.CodePoolCeiling, "its node pools hold at most %d of its pods %s (%s)%s"}
	hasRoom      = sentence{model.CodeNotInFull, "has room for its part"}

	// What a group lacks for demand.
	tooSmall     = sentence{model.CodeTooSmall, "too small: %s"}
	unlike       = sentence{model.CodeLabels, "%s"}
	unlabelled   = sentence{model.CodeLabels, "it lacks the gang's topology label %s"}
	labelIs      = sentence{model.CodeLabels, "label %s is %s"}
	othersOn     = sentence{model.CodeLabels, "the gang's other bundles are on %s"}
	sliceUnknown = sentence{model.CodeSliceUnknown, "the %s of its %s is unknown, needs %s"}
	sliceSmall   = sentence{model.CodeSliceTooSmall, "%s%s has %s, needs %s"}
	tooOpen      = sentence{model.CodeIsolation, "its %s %s, needs %s isolation"}

	// What new pods of a group must turn out to announce.
	undecided    = sentence{model.CodeLabels, "%s; %spin the group to one value by its nodeSelector and labels"}
	replicaSmall = sentence{model.CodeLabels, "%s; one replica has no room for the whole gang: raise numOfHosts, or " +
		"use smaller gangs"}
	trying     = sentence{model.CodeTrying, "%s; trying %s"}
	comingShow = sentence{model.CodeTrying, "%s; the pods on their way show it"}
	idleDoNot  = sentence{model.CodeLabels, "%s; its idle workers do not serve it, so no other is tried beside them"}
	knownFirst = sentence{model.CodeLabels, "%s; groups that are known to serve it go first"}

	// What a group launches, or why nothing.
	launching     = sentence{model.CodeLaunch, "launching %s %s%s"}
	tryingFor     = sentence{model.CodeTrying, "trying %s for %s: %s"}
	otherChosen   = sentence{model.CodeNotChosen, "group %s was chosen: %s"}
	turnComes     = sentence{model.CodeTooMany, "the next plans continue with demand that it could serve"}
	keptAtMinimum = sentence{model.CodeNotNeeded, "kept at its minimum of %d; no waiting demand needs more"}
	noDemand      = sentence{model.CodeNotNeeded, "no waiting demand needs another pod of this group"}
	noneNeeded    = sentence{model.CodeNotNeeded, "its pods could serve it, but none is needed"}
	notInFull     = sentence{model.CodeNotInFull, "it cannot be served in full, so nothing is launched for it"}
	serves        = sentence{model.CodeLaunch, "launching %s, which %s %d%s"}

	// What else a group has.
	untilStopped = sentence{model.CodeStop, "stopping pods are not gone yet"}
	notJoined    = sentence{model.CodeOnTheWay, "%s requested earlier %s not joined Ray yet%s%s"}
	stopping     = sentence{model.CodeStop, "stopping %s: %s (%s)"}
	idleOf       = sentence{model.CodeIdle, "%d of %d idle, longest %s%s"}
	holdOver     = sentence{model.CodeHeldOver, "%s %s REST requests until their replacements have joined Ray"}
	objectsKeep  = sentence{model.CodeHoldsObjects, "primary copies of objects keep %s without work from being idle"}
	groupsKeep   = sentence{model.CodeReserved, "placement groups keep %s without work from being idle"}
	workKeeps    = sentence{model.CodeUncounted, "tasks or actors that hold no resources keep %s from being idle"}

	// Why demand is not served.
	manyShapes = sentence{model.TooMany, "there are more different requests and bundles of gangs than the %d that " +
		"one plan takes on; the next plans continue with this demand"}
	onlyNodes = sentence{model.Capped, "only existing nodes could serve it, and they do not have enough room"}
	missed    = sentence{model.Impossible, "%s"}
	together  = sentence{model.Impossible, "must be served together with %s of the same call: %s"}
	nowhere   = sentence{model.Impossible, "no node and no group has the gang's topology label %s; set it in " +
		"the labels of a group, or take it from a label of its Kubernetes nodes with --topology-label"}
	noValue       = sentence{model.Impossible, "no value of label %s has nodes or groups for every bundle: %s"}
	heldUnlike    = sentence{model.Capped, "the nodes that hold the gang's other bundles lack its topology label %s"}
	heldElsewhere = sentence{model.Capped, "its other bundles are on %s, which has no room for the remaining %d: %s"}

	// What becomes of a REST request.
	satisfied   = sentence{"satisfied", "workers that have joined Ray have room for all of it"}
	unevaluated = sentence{model.TooMany, "this plan did not evaluate it, because too many requests " +
		"come before it, or too many shapes"}
	followLater  = sentence{model.CodeInFlight, "%s follow when earlier pods have joined"}
	launchingFor = sentence{model.CodeLaunch, "launching pods for %s"}
	requested    = sentence{model.CodeOnTheWay, "pods requested earlier have not joined Ray yet, for %s"}

	// What becomes of warm capacity.
	noGroup     = sentence{model.WarmNoGroup, "there is no worker group %q"}
	neverHeld   = sentence{model.WarmImpossible, "no worker group could ever hold it"}
	demandFirst = sentence{model.WarmDemandFirst, "demand comes first: it waits for what group %s would take"}
	otherPlaces = sentence{model.WarmDemandFirst, "demand comes first: more pods would change where it is placed"}

	// What one pod does.
	isHead     = sentence{model.PodHead, "it is the head: it serves demand and is never launched or stopped"}
	podComing  = sentence{model.PodPending, "it has not joined Ray yet%s%s; it counts with its group's resources"}
	idleFor    = sentence{model.PodIdle, "idle for %s%s"}
	podLeaving = sentence{model.PodLeaving, "it is draining or being deleted; it serves nothing, " +
		"but counts toward its group's limits until it is gone"}
	podGivenUp = sentence{model.PodGivenUp, "it did not join Ray in time and does not count; other pods serve " +
		"the demand"}
	podRemoved = sentence{model.PodRemoved, "the snapshot has no worker group %q, so the plan ignores the pod: " +
		"it places no demand on it and does not stop it"}
	freeOf = sentence{model.PodRoom, "%s of %s free"}

	// How many pods of a group are in each state.
	states = []sentence{
		{model.PodBusy, "%d with work"},
		{model.CodeUncounted, "%d with work that holds no resources"},
		{model.PodArguments, "%d with a task that waits for its arguments"},
		{model.CodeHoldsObjects, "%d without work, with primary copies of objects"},
		{model.CodeReserved, "%d without work, reserved by placement groups"},
		{model.PodUnexplained, "%d not idle, for a cause that Ray does not report"},
		{model.PodIdle, "%d idle"},
		{model.PodPending, "%d on their way"},
		{model.PodLeaving, "%d leaving"},
		{model.PodGivenUp, "%d given up"},
	}
)
