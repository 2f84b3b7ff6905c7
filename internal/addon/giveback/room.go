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

// ending returns the pods of those overdue workers that may end, because their work has room on other workers that have
// joined, beside the demand that waits. None of the others is room: they leave too.
func (in *Input) ending(overdue []unit) map[string]bool {
	gone := map[string]bool{}
	var work []raydemand.Request
	for i := range overdue {
		gone[overdue[i].members[0].Pod] = true
		work = append(work, overdue[i].work...)
	}
	waits, known := in.unplaced(gone, in.Snapshot.Requests)
	if !known {
		return nil
	}
	fits := func(work []raydemand.Request) bool {
		left, known := in.unplaced(gone, slices.Concat(in.Snapshot.Requests, work))
		return known && left <= waits
	}
	if fits(work) {
		return gone
	}
	may := map[string]bool{}
	work = nil
	for i := range overdue[:min(len(overdue), mostTried)] {
		u := &overdue[i]
		if with := slices.Concat(work, u.work); fits(with) {
			may[u.members[0].Pod], work = true, with
		}
	}
	return may
}

// unplaced returns how many requests and gangs have no place on workers that have joined, while some pods are gone. Pods that are
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
	left += int64(len(plan.InfeasibleGangRequests))
	return left, plan.Deferred == nil
}
