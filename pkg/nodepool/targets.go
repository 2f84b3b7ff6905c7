package nodepool

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Target is the desired state of one worker group: its replicas and, when replicas leave, the pods to delete by name.
type Target struct {
	Group string
	// Index and From repeat what was read; the patch tests both.
	Index, From int
	// Replicas is the new value, within [minReplicas, maxReplicas]; lower if the minimum is immense, because then the
	// operator keeps the minimum whatever is written.
	Replicas int
	// WorkersToDelete replaces the stored list; nil leaves it unchanged.
	WorkersToDelete []string
	// TakenBack is how many replicas stay although they were named, because Ray runs or starts in them again.
	TakenBack int
}

// Change is one guarded write to one RayCluster: all its targets or none.
type Change struct {
	Cluster ClusterKey
	// UID guards against a cluster that was deleted and created again under the same name.
	UID string
	// Generation is that of the spec for which the targets were computed. A change that names pods is refused on any
	// other.
	Generation int64
	Targets    []Target
	// ValidUntil is when the reading of Ray on which the targets rest is too old for them; zero means never.
	ValidUntil time.Time
	// OwnersReadSince allows what is known of the RayCluster's owners, if they were read since; zero reads them again.
	OwnersReadSince time.Time
	// Term is that of the writer, which is stored with the change; empty without shards.
	Term string
}

// ProvisioningChange is one write to a ProvisioningRequest, or to a pod that uses one.
type ProvisioningChange struct {
	Kind    string
	Cluster ClusterKey
	// UID is that of the RayCluster.
	UID     string
	Request ProvisioningRequest
	// Pod is the pod that ConsumeCapacity and ForgetCapacity write to, as of one version.
	Pod Worker
}

// Codes of the findings that Targets returns.
const (
	// UnknownGroup: a launch or a leaving pod belongs to a group that the RayCluster does not have.
	UnknownGroup = "group-unknown"
	// UnknownPod: a leaving pod is not a worker of this RayCluster.
	UnknownPod = "pod-unknown"
	// ClosedGroup: the group is broken or suspended, so nothing is written to it.
	ClosedGroup = "group-closed"
	// SplitReplica: only some hosts of a multi-host replica should leave, but the operator deletes replicas whole.
	SplitReplica = "replica-split"
	// NameTakenBack: a pod named for deletion has a live Ray node again, so it is not to be deleted.
	NameTakenBack = "name-taken-back"
	// MinimumImmense: minReplicas asks for far more pods than exist, and the operator creates them all at once.
	MinimumImmense = "minimum-immense"
	// SpecRefused: the operator refuses the whole spec, so a write has no effect.
	SpecRefused = "spec-refused"
)

// Targets turns launches (pods per group) and leaving pods (by name) into targets of the worker groups.
//
// The base is the goal in the RayCluster, clamp(replicas, min, max), and not the pods seen, so that it includes pods on
// their way. Pods beyond the goal, which the operator keeps under in-tree autoscaling, only prevent two mistakes: a
// launch is added on top of them (a smaller number would create nothing), and removing one of them does not lower the
// goal.
//
//	replicas = clamp(base + ceil(launch / numOfHosts) − replicas leaving, min, max)
//
// A reduction is one target with the lower replicas and the names. The names of a target are pods of its own group:
// those that leave now, and those already stored whose pods still exist. If the pod of a stored name runs Ray again,
// the name is removed and a replica added. Names whose pods are gone are dropped with the next write. A list of which
// no pod is left is cleared by a separate target, but never earlier, because the operator counts a terminating pod that
// is no longer named as surplus (docs/reference/facts.md#ending-pods). A group without a change has no target, with two
// exceptions. Replicas stored above the maximum are lowered to it: the operator applies the maximum, but a maximum
// raised later would start those replicas without demand. That waits for the next target while more replicas exist than
// the maximum allows, because the end of one of them is such a target. Replicas stored below the minimum are raised to
// it if the operator deletes arbitrary surplus pods (no in-tree autoscaling), because a minimum lowered later would
// make it delete busy ones. An immense minimum is never written into replicas (see minimumToWrite). What cannot be done
// becomes a finding; an error means that the caller's numbers are invalid.
func Targets(cluster Cluster, launch map[string]int, leaving []string) ([]Target, []raydemand.Finding, error) {
	a, changes := &targetCalculation{cluster: &cluster}, len(leaving) > 0
	for _, name := range slices.Sorted(maps.Keys(launch)) {
		if launch[name] < 0 {
			return nil, nil, fmt.Errorf("computing targets of %s: invalid number of pods to launch in group %q: %d",
				cluster.Key, name, launch[name])
		}
		changes = changes || launch[name] > 0
		if _, known := cluster.Group(name); !known && launch[name] > 0 {
			a.report(UnknownGroup, "spec.workerGroupSpecs", name, "its launches are dropped",
				"plan again with the RayCluster as it is now")
		}
	}
	if cluster.Refused {
		if changes {
			a.report(SpecRefused, "spec", "", "the operator does nothing until the spec is valid",
				"fix what the Event InvalidRayClusterSpec names")
		}
		return nil, a.findings, nil
	}
	byGroup := a.leavingByGroup(leaving)
	var targets, cut []Target
	alone := false // whether the cuts are worth a write of their own
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		if target, changed := a.target(group, launch[group.Name], byGroup[group.Name]); changed {
			targets = append(targets, target)
		} else if group.Replicas > group.Max && !group.Broken && !group.Suspended {
			cut = append(cut, targetOf(group, group.Max))
			alone = alone || a.existingReplicas(group, max(group.NumOfHosts, 1)) <= group.Max
		}
	}
	if len(targets) > 0 || alone {
		targets = append(targets, cut...)
	}
	return targets, a.findings, nil
}

// targetCalculation is one computation of Targets.
type targetCalculation struct {
	cluster  *Cluster
	findings []raydemand.Finding
}

// target computes one group; changed is false if the group is already as desired.
func (a *targetCalculation) target(group *WorkerGroup, launch int, leaving []Worker) (target Target, changed bool) {
	if group.Broken || group.Suspended {
		if launch > 0 || len(leaving) > 0 {
			a.report(ClosedGroup, groupField(group), group.Name, "a broken or suspended group is not written to",
				"see the group's own findings")
		}
		return Target{}, false
	}
	hosts := max(group.NumOfHosts, 1)
	leaving, left := a.departures(group, hosts, leaving)
	goal := min(max(group.Replicas, group.Min), group.Max)
	launch = max(0, launch-a.replacedAnyway(group, goal, leaving))
	returned := a.returned(group, hosts)
	base := goal + len(returned)
	lasting := base
	if a.cluster.InTreeAutoscaling { // without it, the operator itself deletes the replicas beyond the goal
		lasting = max(base, a.existingReplicas(group, hosts)+len(returned))
	}
	desired := min(base, lasting-left)
	if launch > 0 {
		desired = lasting + (launch+hosts-1)/hosts - left
	}
	desired = min(max(desired, group.Min), group.Max)

	names, listChanged := a.names(group, leaving, returned)
	minimum := a.minimumToWrite(group, hosts)
	exposed := !a.cluster.InTreeAutoscaling && group.Replicas < minimum
	if desired == goal && !exposed && len(leaving)+len(returned) == 0 && (!listChanged || len(names) > 0) {
		return Target{}, false
	}
	if desired == group.Min {
		desired = minimum
	}
	target = targetOf(group, desired)
	if listChanged {
		target.WorkersToDelete = names
	}
	target.TakenBack = len(returned)
	return target, true
}

func targetOf(group *WorkerGroup, replicas int) Target {
	return Target{Group: group.Name, Index: group.Index, From: group.Replicas, Replicas: replicas}
}

// names returns the desired list of workers to delete, never nil, and whether it differs from the stored one.
func (a *targetCalculation) names(group *WorkerGroup, leaving []Worker, returned map[string]bool) ([]string, bool) {
	names := make([]string, 0, len(group.WorkersToDelete)+len(leaving))
	for _, w := range a.cluster.Workers {
		if w.Group == group.Name && slices.Contains(group.WorkersToDelete, w.Pod) && !returned[replicaOf(w)] {
			names = append(names, w.Pod)
		}
	}
	for _, w := range leaving {
		names = append(names, w.Pod)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	stored := slices.Sorted(slices.Values(group.WorkersToDelete))
	return names, !slices.Equal(names, stored)
}

// returned returns the replicas whose names are to be removed from the list: the operator has not deleted the pod, and
// its Ray node runs or starts. If the maximum leaves no room for one, the name stays unless in-tree autoscaling keeps
// the operator from deleting a surplus pod instead. Replicas that do not exist yet leave room: the operator deletes the
// named pods of a group before it creates others, so the returned ones take their place.
func (a *targetCalculation) returned(group *WorkerGroup, hosts int) map[string]bool {
	returned := map[string]bool{}
	goal := min(max(group.Replicas, group.Min), group.Max)
	room := group.Max - min(goal, a.existingReplicas(group, hosts))
	for _, w := range a.cluster.Workers {
		if w.Group != group.Name || !w.Returned || returned[replicaOf(w)] || (hosts > 1 && w.Replica == "") {
			continue
		}
		if a.cluster.InTreeAutoscaling || len(returned) < room {
			returned[replicaOf(w)] = true
			a.report(NameTakenBack, groupField(group)+".scaleStrategy.workersToDelete", w.Pod,
				"the operator did not delete the pod, and Ray has started in it or is starting, so it may have work",
				"check why the operator is behind: it may refuse the pods of an earlier group")
		}
	}
	return returned
}

// replicaOf returns the replica that a worker belongs to, which is the pod itself in a single-host group.
func replicaOf(w Worker) string {
	if w.Replica != "" {
		return "replica " + w.Replica
	}
	return "pod " + w.Pod
}

// existingReplicas counts the replicas that exist and stay.
func (a *targetCalculation) existingReplicas(group *WorkerGroup, hosts int) int {
	pods, replicas := 0, map[string]bool{}
	for _, w := range a.cluster.Workers {
		if w.Group != group.Name || w.Terminating || w.Failed || slices.Contains(group.WorkersToDelete, w.Pod) {
			continue
		}
		pods++
		if w.Replica != "" {
			replicas[w.Replica] = true
		}
	}
	if hosts > 1 {
		return len(replicas)
	}
	return pods
}

// replacedAnyway counts the pods that somebody else ends, that the operator replaces as soon as they are gone, and that
// are not named: launching for them too would replace them twice. In a multi-host group the caller counts their
// replacements as pods on their way.
func (a *targetCalculation) replacedAnyway(group *WorkerGroup, goal int, leaving []Worker) int {
	if group.NumOfHosts > 1 {
		return 0
	}
	named, unnamed := 0, 0
	for _, w := range a.cluster.Workers {
		counts := w.Group == group.Name && w.Replica == "" && w.Terminating && !w.Failed
		switch {
		case !counts || slices.Contains(group.WorkersToDelete, w.Pod):
		case slices.ContainsFunc(leaving, func(gone Worker) bool { return gone.Pod == w.Pod }):
			named++
		default:
			unnamed++
		}
	}
	return max(0, min(unnamed, goal-a.existingReplicas(group, 1)-named))
}

func groupField(group *WorkerGroup) string {
	return fmt.Sprintf("spec.workerGroupSpecs[%d]", group.Index)
}

func (a *targetCalculation) report(code, field, seen, why, fix string) {
	a.findings = append(a.findings, raydemand.Finding{
		Code: code, Severity: raydemand.Warning, Object: "RayCluster " + a.cluster.Key.String(),
		Field: field, Seen: seen, Why: why, Fix: fix,
	})
}

// immense is how many more pods than exist a minimum may ask for before it counts as a mistake: about the size of the
// largest Kubernetes clusters.
const immense = 10_000

// minimumToWrite returns the replicas to write for a group at its minimum: the minimum, unless that is immense. The
// operator creates all pods of the minimum whatever replicas says, and nothing can prevent that. But if replicas said
// so too, correcting the minimum would not end it; so replicas only cover the pods that exist.
func (a *targetCalculation) minimumToWrite(group *WorkerGroup, hosts int) int {
	existing := a.existingReplicas(group, hosts)
	if (group.Min-existing)*hosts <= immense {
		return group.Min
	}
	a.report(MinimumImmense, groupField(group)+".minReplicas", fmt.Sprint(group.Min),
		fmt.Sprintf("it asks for more than %d pods beyond those that exist, and the operator creates them at once, "+
			"past the limit on pods in flight", immense),
		"set the intended minimum; replicas are not raised with it, so a lower minimum ends it")
	return min(max(group.Replicas, existing), group.Min)
}
