package giveback

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// moves reports whether the work of workers that are not to be ended has room on other workers that have joined, while
// these are gone. Demand that waits competes for the same room.
func (in *Input) moves(chosen []unit) bool {
	var work []raydemand.Request
	gone := map[string]bool{}
	for _, u := range chosen {
		if u.cost.moved > 0 {
			work = append(work, u.work...)
		}
		for _, m := range u.members {
			gone[m.Pod] = true
		}
	}
	if len(work) == 0 {
		return true
	}
	if len(in.Snapshot.Requests)+len(in.Snapshot.Gangs) > 0 {
		return false
	}
	left, known := in.unplaced(gone, work)
	return known && left == 0
}

// unplaced returns how many requests have no place on workers that have joined, while some pods are gone. Pods that are
// launched, or that wait for a node, may come too late. It is unknown if the requests are too many for one plan.
func (in *Input) unplaced(gone map[string]bool, requests []raydemand.Request) (left int64, known bool) {
	s := *in.Snapshot
	s.Nodes, s.Groups, s.Requests, s.Turn = slices.Clone(s.Nodes), slices.Clone(s.Groups), requests, ""
	for i := range s.Nodes {
		if n := &s.Nodes[i]; gone[n.Pod] || n.State == planner.Pending {
			n.State = planner.Leaving
		}
	}
	for i := range s.Groups {
		s.Groups[i].Closed = "only workers that have joined are room"
	}
	plan := in.Compute(s)
	for i := range plan.InfeasibleRequests {
		left += plan.InfeasibleRequests[i].Count
	}
	return left, plan.Deferred == nil
}
