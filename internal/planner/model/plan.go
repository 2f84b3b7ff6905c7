package model

import (
	"fmt"
	"math"

	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Policy is what an operator may choose about planning. The zero value is the default.
type Policy struct {
	// GPUForCPU lets CPU-only work launch GPU groups even where a CPU group could serve it.
	GPUForCPU bool `json:"gpuForCPU,omitempty"`
	// MaxInFlight and MaxInFlightPerGroup bound the pods of all groups, and of one group, that are asked for and have not
	// joined Ray; 0 is no bound. What they hold back follows as pods join. A gang or a replica that is larger goes alone.
	MaxInFlight         int `json:"maxInFlight,omitempty"`
	MaxInFlightPerGroup int `json:"maxInFlightPerGroup,omitempty"`
}

// Reason is a stable code with a sentence for people.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Plan is a decision. Its JSON form is what `autoscaler plan` prints; other programs read it, so keys keep their names.
type Plan struct {
	// Launch counts pods per group; groups without launches are absent.
	Launch    map[string]int `json:"launch"`
	Terminate []Termination  `json:"terminate"`
	Groups    []GroupPlan    `json:"groups"`
	// The three infeasible lists repeat what is not served, with the reason.
	InfeasibleRequests         []UnmetRequest `json:"infeasibleRequests"`
	InfeasibleGangRequests     []UnmetGang    `json:"infeasibleGangRequests"`
	InfeasibleRequestResources []UnmetRequest `json:"infeasibleRequestResources"`
	// Summary accounts for all demand: requests largest first, gangs as they were planned, request_resources.
	Summary []DemandSummary `json:"summary"`
	// Requests has each request over REST, the plain one first, then by id.
	Requests []RequestPlan `json:"requests,omitempty"`
	// Price is the price of what is launched, where every launched group has one.
	Price *float64 `json:"price,omitempty"`
	// Findings report what the snapshot says against all sense and how it was planned around.
	Findings []raydemand.Finding `json:"findings,omitempty"`
}

// Termination names one pod that has to go. Reason is idle, max_group, max_workers or outdated.
type Termination struct {
	Pod    string `json:"pod"`
	Group  string `json:"group"`
	Reason string `json:"reason"`
	// Busy: the pod has work; Parting says how it may leave.
	Busy    bool   `json:"busy,omitempty"`
	Message string `json:"message,omitempty"`
}

// Parting says how a pod that has work leaves, and nothing of one that has none. Only above its group's maximum is it
// drained with a deadline.
func (t Termination) Parting() string {
	switch {
	case !t.Busy:
		return ""
	case t.Reason == StopMaxGroup:
		return "; it has work and leaves only by a drain with a deadline"
	}
	return "; it has work and leaves once that is done"
}

// GroupPlan is one group's row. Current, Desired, Min, Max and Held count pods.
type GroupPlan struct {
	Name    string `json:"name"`
	Current int    `json:"current"`
	Desired int    `json:"desired"`
	Min     int    `json:"min"`
	Max     int    `json:"max"`
	// Held is what would be launched too, and is held back by the policy's caps on pods on their way.
	Held int `json:"held,omitempty"`
	// BelowMin is how many pods a limit keeps the group below its minimum, those launched counted as there.
	BelowMin  int              `json:"belowMin,omitempty"`
	Resources raydemand.Bundle `json:"resources"`
	Reasons   []Reason         `json:"reasons"`
	// Slice is what one GPU of the group is; nil where nothing is known of it.
	Slice *Slice `json:"slice,omitempty"`
	// NumGPUs is there where the group was read from a RayCluster's manifest.
	NumGPUs *NumGPUs `json:"numGpus,omitempty"`
}

// NumGPUs are what the spec of a group says about the GPUs of one worker, what is passed to `ray start`, and what the
// nodes report. Compute knows nothing of it; who reads manifests fills it in. nil is not known.
type NumGPUs struct {
	Declared *raydemand.Amount `json:"declared"`
	Derived  *raydemand.Amount `json:"derived"`
	Reported *raydemand.Amount `json:"reported"`
}

// Size writes the row's numbers as a person would: 1 → 3 pods (min 0, no max).
func (g GroupPlan) Size() string {
	pods := phrase.Pods(int64(g.Desired))
	if g.Current != g.Desired {
		pods = fmt.Sprintf("%d → %s", g.Current, pods)
	}
	most := fmt.Sprintf("max %d", g.Max)
	if g.Max >= math.MaxInt32 {
		most = "no max"
	}
	return fmt.Sprintf("%s (min %d, %s)", pods, g.Min, most)
}

// UnmetRequest is a request, or the rest of one, that this plan does not serve.
type UnmetRequest struct {
	raydemand.Request
	// AskedBy names the requests of owners that it is of, those that are served first first; empty for what nobody asks in
	// his own name.
	AskedBy string `json:"askedBy,omitempty"`
	Reason  Reason `json:"reason"`
}

// UnmetGang is a gang that this plan does not serve.
type UnmetGang struct {
	raydemand.Gang
	Reason Reason `json:"reason"`
}

// Reason codes of unmet demand. Impossible: no group could ever serve it. Capped: a limit stands in the way. Closed:
// the groups that could serve it take no launches until somebody mends them. CoolingDown: some of them take no launches
// for a while because their last ones failed, and are tried again by themselves.
const (
	Impossible  = "impossible"
	Capped      = "capped"
	Closed      = "closed"
	CoolingDown = "cooling_down"
)
