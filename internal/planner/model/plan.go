package model

import (
	"fmt"
	"math"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Policy is how an operator configures planning. The zero value is the default.
type Policy struct {
	// MaxInFlight limits the requested pods that have not joined Ray; 0 means no limit. Launches beyond it follow as
	// pods join. A larger gang or replica is launched alone.
	MaxInFlight int `json:"maxInFlight,omitempty"`
	// Shapes is how many different requests and bundles of gangs the plan takes on; the next plans continue with the
	// others. 0 means 200, or a twentieth of the different requests if that is more, up to 1000.
	Shapes int `json:"shapes,omitempty"`
}

// Reason is a stable code with a sentence for users.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Conditional returns the reason as it reads for a RayCluster that Heliostat does not scale: the launches of the plan
// are not carried out.
func (r Reason) Conditional() Reason {
	r.Message = conditional.Replace(r.Message)
	return r
}

// conditional rewords what messages say about launches for a RayCluster that Heliostat does not scale.
var conditional = strings.NewReplacer(
	"launching ", "would launch ",
	"is placed on pods launched now", "would be placed on pods that Heliostat would launch",
	"are placed on pods launched now", "would be placed on pods that Heliostat would launch",
)

// Plan is a decision. Its JSON form is the output of `autoscaler plan`; other programs read it, so keys are stable.
type Plan struct {
	// Launch counts pods per group; groups without launches are absent.
	Launch    map[string]int `json:"launch"`
	Terminate []Termination  `json:"terminate"`
	Groups    []GroupPlan    `json:"groups"`
	// The three infeasible lists repeat unserved demand, with the reason.
	InfeasibleRequests         []UnmetRequest `json:"infeasibleRequests"`
	InfeasibleGangRequests     []UnmetGang    `json:"infeasibleGangRequests"`
	InfeasibleRequestResources []UnmetRequest `json:"infeasibleRequestResources"`
	// Summary accounts for all demand: requests, largest first; gangs in the order of planning; request_resources.
	Summary []DemandSummary `json:"summary"`
	// Requests lists each request over REST: the plain one first, then by ID.
	Requests []RequestPlan `json:"requests,omitempty"`
	// Warm is what the plan does for each entry of the capacity policy, those with a group first.
	Warm []WarmPlan `json:"warm,omitempty"`
	// Price is the price of the launched pods, if every launched group has one.
	Price *float64 `json:"price,omitempty"`
	// Deferred is the demand that was too much for this plan; nil if all of it was planned.
	Deferred *Deferred `json:"deferred,omitempty"`
	// Stays is why idle workers stay, by pod, in the codes of why GPUs are unused; nil if none is idle.
	Stays map[string]string `json:"-"`
	// Findings report contradictions in the snapshot, and how the plan handles them.
	Findings []raydemand.Finding `json:"findings,omitempty"`
}

// Deferred is demand that the next plans take on, one part after the other.
type Deferred struct {
	// Shapes counts the shapes of requests, Gangs the gangs.
	Shapes int `json:"shapes,omitempty"`
	Gangs  int `json:"gangs,omitempty"`
	// Next is the Turn of the next snapshot.
	Next string `json:"next"`
}

// Termination names one pod to stop. Reason is idle, max_group, max_workers or outdated.
type Termination struct {
	Pod    string `json:"pod"`
	Group  string `json:"group"`
	Reason string `json:"reason"`
	// Busy: the pod has work; Parting describes how it stops.
	Busy    bool   `json:"busy,omitempty"`
	Message string `json:"message,omitempty"`
}

// Parting describes how a pod with work stops, or returns an empty string for a pod without work. A drain has a
// deadline only if the group is above its maximum.
func (t Termination) Parting() string {
	switch {
	case !t.Busy:
		return ""
	case t.Reason == StopMaxGroup:
		return "; it has work, so it stops by a drain with a deadline"
	}
	return "; it has work and stops after the work is done"
}

// GroupPlan is one group's row. Current, Desired, Min, Max and Held count pods.
type GroupPlan struct {
	Name    string `json:"name"`
	Current int    `json:"current"`
	Desired int    `json:"desired"`
	Min     int    `json:"min"`
	Max     int    `json:"max"`
	// Held counts launches that the policy's in-flight caps delay.
	Held int `json:"held,omitempty"`
	// BelowMin is how far a limit keeps the group below its minimum, after the plan's launches.
	BelowMin  int              `json:"belowMin,omitempty"`
	Resources raydemand.Bundle `json:"resources"`
	Reasons   []Reason         `json:"reasons"`
	// Slice is what one GPU of the group is; nil if unknown.
	Slice *Slice `json:"slice,omitempty"`
	// NumGPUs is set if the group was read from a RayCluster's manifest.
	NumGPUs *NumGPUs `json:"numGpus,omitempty"`
}

// NumGPUs compares the GPUs of one worker in the group's spec, in the arguments of `ray start`, and in the reports of
// nodes; nil means unknown. Compute does not use it; the reader of manifests sets it.
type NumGPUs struct {
	Declared *raydemand.Amount `json:"declared"`
	Derived  *raydemand.Amount `json:"derived"`
	Reported *raydemand.Amount `json:"reported"`
}

// Size formats the row's numbers: 1 → 3 pods (min 0, no max).
func (g GroupPlan) Size() string {
	pods := Pods(int64(g.Desired))
	if g.Current != g.Desired {
		pods = fmt.Sprintf("%d → %s", g.Current, pods)
	}
	most := fmt.Sprintf("max %d", g.Max)
	if g.Max >= math.MaxInt32 && g.Max%math.MaxInt32 == 0 { // KubeRay's default for maxReplicas, times the hosts
		most = "no max"
	}
	return fmt.Sprintf("%s (min %d, %s)", pods, g.Min, most)
}

// UnmetRequest is a request, or the rest of one, that this plan does not serve.
type UnmetRequest struct {
	raydemand.Request
	// AskedBy names the owned requests that it belongs to, in the order in which they are served. It is empty for
	// demand without an owner.
	AskedBy string `json:"askedBy,omitempty"`
	// OverREST: it was requested over REST, not from within Ray.
	OverREST bool   `json:"overREST,omitempty"`
	Reason   Reason `json:"reason"`
}

// UnmetGang is a gang that this plan does not serve.
type UnmetGang struct {
	raydemand.Gang
	Reason Reason `json:"reason"`
}

// Reason codes of unmet demand. Impossible: no group could ever serve it. Trying: only pods that are tried one replica
// at a time could. PoolPromised: the nodes that could serve it are promised to RayClusters that come first. Capped: a
// limit prevents it. Closed: the groups that could serve it are closed to launches until somebody corrects them.
// CoolingDown: some of them take no launches for a while because their last ones failed, and are then tried again
// automatically. TooMany: there is too much demand for one plan, and one of the next plans takes this on; the summary
// counts it as capped.
const (
	Impossible   = "impossible"
	Trying       = "trying"
	PoolPromised = "pool_promised"
	Capped       = "capped"
	Closed       = "closed"
	CoolingDown  = "cooling_down"
	TooMany      = "too_many"
)

// RequestPlan is the state of one request over REST. Asked, Served and Waiting count bundles; the rest of Asked is not
// planned for.
type RequestPlan struct {
	ID    string `json:"id,omitempty"`
	Owner string `json:"owner,omitempty"`
	// Plain marks the request without an owner.
	Plain    bool                   `json:"plain,omitempty"`
	Priority int32                  `json:"priority,omitempty"`
	State    raydemand.RequestState `json:"state"`
	Reason   Reason                 `json:"reason"`
	Asked    int64                  `json:"asked"`
	// Served bundles are placed on workers that have joined Ray. Waiting ones are placed on workers that are on their
	// way or that are launched later.
	Served  int64 `json:"served"`
	Waiting int64 `json:"waiting"`
	// Groups lists the groups of the pods that serve it, by name; the head's name is empty.
	Groups []RequestGroup `json:"groups,omitempty"`
	// Pods lists names of pods that serve it, at most MaxRequestPods.
	Pods []string `json:"pods,omitempty"`
}

// RequestGroup counts the pods of a group that serve a request. The same pods can serve other requests too.
type RequestGroup struct {
	Name string `json:"name"`
	Pods int64  `json:"pods"`
	// Waiting counts the pods that have not joined Ray. Since is when the last of them was requested; zero if unknown.
	Waiting int64     `json:"waiting,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// MaxRequestPods is how many pods of a request are named.
const MaxRequestPods = 100
