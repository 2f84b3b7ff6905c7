package consolidation

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fits reports whether the work of a worker fits elsewhere. Both must hold:
//
//   - on the other workers that are in use. An idle worker would leave by itself, or it is warm, or a request holds it,
//     so a move there saves nothing. The head is left out too: its room is for drivers.
//   - in the whole plan, so that nothing is launched, and no request and no warm capacity gets less than before.
func (in *Input) fits(pod string, work []raydemand.Request) bool {
	busy := in.without(pod, work)
	busy.Warm, busy.OwnedRequests, busy.KeptResources, busy.Constraint, busy.Head = nil, nil, nil, nil, nil
	for i := range busy.Nodes { // the planner would expect pods for nodes that it does not see
		if n := &busy.Nodes[i]; n.State != planner.Running {
			n.State = planner.Leaving
		}
	}
	for i := range busy.Groups {
		busy.Groups[i].Min = 0
	}
	if plan := planner.Compute(busy, busy.Policy); len(plan.Launch) > 0 || len(plan.InfeasibleRequests) > 0 {
		return false
	}
	plan := planner.Compute(in.without(pod, work), busy.Policy)
	return len(plan.Launch) == 0 && plan.Deferred == nil && len(plan.InfeasibleRequests) == 0 &&
		len(plan.InfeasibleRequestResources) <= len(in.Plan.InfeasibleRequestResources) &&
		!servesLess(in.Plan, &plan)
}

// without returns the snapshot with the worker leaving and its work waiting.
func (in *Input) without(pod string, work []raydemand.Request) planner.Snapshot {
	s := *in.Snapshot
	s.Groups, s.Nodes = slices.Clone(s.Groups), slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if s.Nodes[i].Pod == pod {
			s.Nodes[i].State = planner.Leaving
		}
	}
	s.Requests, s.Turn = slices.Clone(work), ""
	return s
}

// servesLess reports whether after serves a request or warm capacity worse than before.
func servesLess(before, after *planner.Plan) bool {
	if len(after.Requests) < len(before.Requests) || len(after.Warm) < len(before.Warm) {
		return true
	}
	for i := range before.Requests {
		if after.Requests[i].Served < before.Requests[i].Served {
			return true
		}
	}
	for i := range before.Warm {
		if after.Warm[i].Ready < min(before.Warm[i].Ready, before.Warm[i].Count) {
			return true
		}
	}
	return false
}
