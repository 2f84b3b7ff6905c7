package api

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// maxWorkers bounds the workers that each list of an answer has: a whole fleet may start or go at once.
const maxWorkers = 100

// workers returns the first workers of which a fact is known, in order.
func (v View) workers(known func(*planner.Node) bool, order func(a, b *planner.Node) int) []*planner.Node {
	var all []*planner.Node
	for i := range v.Snapshot.Nodes {
		if n := &v.Snapshot.Nodes[i]; known(n) {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, order)
	return all[:min(len(all), maxWorkers)]
}

// arrivals returns the starting workers: by group, then those that have come furthest, then those that came earliest.
func (v View) arrivals() (all []apiv1.Arrival) {
	stage := func(n *planner.Node) int { return slices.Index(arrival.Stages, n.Arrival.Stage) }
	starting := v.workers(func(n *planner.Node) bool { return n.Arrival != nil }, func(a, b *planner.Node) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(stage(b), stage(a)),
			a.Arrival.Since.Compare(b.Arrival.Since))
	})
	for _, n := range starting {
		all = append(all, apiv1.Arrival{Pod: n.Pod, Group: n.Group, Stage: string(n.Arrival.Stage),
			Message: n.Arrival.Message, Since: apiv1.Time(n.Arrival.Since)})
	}
	return all
}

// departures returns the workers whose machine is about to go: certain ones first, and then by deadline.
func (v View) departures() (all []apiv1.Departure) {
	going := v.workers(func(n *planner.Node) bool { return n.Going != nil }, func(a, b *planner.Node) int {
		if a.Going.Certain != b.Going.Certain {
			return map[bool]int{true: -1, false: 1}[a.Going.Certain]
		}
		return a.Going.Deadline.Compare(b.Going.Deadline)
	})
	for _, n := range going {
		all = append(all, apiv1.Departure{Pod: n.Pod, Group: n.Group, Sign: string(n.Going.Sign),
			Message: n.Going.Why(), Certain: n.Going.Certain, Leaving: n.State == planner.Leaving,
			Deadline: apiv1.Time(n.Going.Deadline)})
	}
	return all
}
