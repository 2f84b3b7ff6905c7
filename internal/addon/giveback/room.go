package giveback

import (
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
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

// keepRoom counts idle workers as work that cannot move while work leaves other workers: it may need their room.
func (in *Input) keepRoom(units []unit) {
	works := func(m observe.Member) bool { return leaves(m) && !m.Node.Available.Equal(m.Node.Total) }
	if !slices.ContainsFunc(in.View.Members, works) {
		return
	}
	for i := range units {
		if u := &units[i]; u.cost == (cost{}) {
			u.cost.ended, u.why = 1, "it is idle, but work that leaves another worker may need its room"
		}
	}
}

// leaves reports whether Ray drains the node of a worker, or its machine goes.
func leaves(m observe.Member) bool {
	return m.Joined() && (m.Node.Status == raydemand.Draining || m.Goes())
}

// leaving returns the work that leaves workers already, beside that of some pods, as far as it can move. Of the pods in
// whole it is all their work; the planner moves what is in use on the others whose machine goes.
func (in *Input) leaving(but map[string]bool) (work []raydemand.Request, whole map[string]bool) {
	on := addon.ByNode(in.Residents)
	whole = map[string]bool{}
	for _, m := range in.View.Members {
		if but[m.Pod] || !leaves(m) {
			continue
		}
		moving, all := addon.MovableWork(m.Node, on[m.Node.ID])
		if whole[m.Pod] = all; all || !m.Goes() {
			work = append(work, moving.Requests...)
		}
	}
	return work, whole
}

// unplaced returns how many requests and gangs have no place on workers that have joined, while some pods are gone. The
// work that leaves other workers competes for the room. Pods that are launched, or that wait for a node, may come too
// late, and the room of a worker on which Ray may just be placing work may be taken. It is unknown if the requests are
// too many for one plan.
func (in *Input) unplaced(gone map[string]bool, requests []raydemand.Request) (left int64, known bool) {
	work, whole := in.leaving(gone)
	unsettled := map[string]bool{}
	for _, m := range in.View.Members {
		unsettled[m.Pod] = m.Joined() && observe.UseOf(m.Node) != observe.Works && !in.Settled(m)
	}
	s := *in.Snapshot
	s.Nodes, s.Groups, s.Requests, s.Turn = slices.Clone(s.Nodes), slices.Clone(s.Groups),
		slices.Concat(requests, work), ""
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if gone[n.Pod] || unsettled[n.Pod] || n.State == planner.Pending {
			n.State = planner.Leaving
		}
		if gone[n.Pod] || whole[n.Pod] {
			n.Going = nil // its work is among the requests
		}
	}
	for i := range s.Groups {
		s.Groups[i].Closed = "only workers that have joined are room"
	}
	plan := planner.Compute(s, s.Policy)
	for i := range plan.InfeasibleRequests {
		left += plan.InfeasibleRequests[i].Count
	}
	left += int64(len(plan.InfeasibleGangRequests))
	return left, plan.Deferred == nil
}
