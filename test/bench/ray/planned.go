package main

import (
	"cmp"
	"maps"
	"math"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The explanations below depend on what a planner decides about the snapshot.

// withoutDoomed removes the pods that a maximum stops, and lowers the maximums by them: Ray's planner places demand on
// pods that it stops in the same pass.
func withoutDoomed(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	if err != nil {
		return false // Ray's planner raised an error for another cause
	}
	return takeAway(&v.ray, rays.stop)
}

// withoutVictims removes the pods that Heliostat stops for a maximum, and lowers the maximums by them. Of pods that are
// equal in everything that counts, the planners stop different ones, and the others differ in what they can still
// serve.
func withoutVictims(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	ours := answerOf(v.us, planner.Compute(v.us, v.us.Policy))
	if err != nil || maps.Equal(rays.stop, ours.stop) {
		return false
	}
	changed := takeAway(&v.us, ours.stop)
	return takeAway(&v.ray, ours.stop) || changed
}

// takeAway removes pods that are stopped for a maximum, and lowers the maximums by their number.
func takeAway(s *planner.Snapshot, stop map[string]string) bool {
	gone, left := map[string]int{}, map[string]int{}
	totalGone, totalLeft := 0, 0
	editNodes(s, func(n *planner.Node) (bool, bool) {
		reason := stop[n.Pod]
		doomed := reason == "max_group" || reason == "max_workers"
		switch {
		case doomed:
			gone[n.Group]++
			totalGone++
		case n.State != planner.AllocationTimeout && n.State != planner.Leaving:
			left[n.Group]++
			totalLeft++
		}
		return !doomed, false
	})
	edit(&s.Groups, func(g *planner.Group) bool {
		g.Max = max(g.Max-gone[g.Name]/g.NumOfHosts, left[g.Name]/g.NumOfHosts, g.Min)
		return true
	})
	if s.MaxWorkers != nil {
		s.MaxWorkers = pointer(max(*s.MaxWorkers-totalGone, totalLeft, 1))
	}
	return totalGone > 0
}

// withoutUnmetConstraint drops request_resources that cannot be served in full. Heliostat keeps the existing nodes for
// it, because its groups may grow again.
func withoutUnmetConstraint(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	if err != nil || !rays.unservedConstraint {
		return false
	}
	v.us.Constraint = nil
	return true
}

// withoutLimits removes all maximums if Heliostat serves as much under them as Ray or more: which demand stays unserved
// under a limit is a choice.
func withoutLimits(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	if err != nil {
		return false
	}
	ours := answerOf(v.us, planner.Compute(v.us, v.us.Policy))
	if ours.shortfall(v.us).compare(rays.shortfall(v.us)) > 0 {
		return false
	}
	for _, s := range []*planner.Snapshot{&v.ray, &v.us} {
		s.MaxWorkers = nil
		edit(&s.Groups, func(g *planner.Group) bool { g.Max += 1000; return true })
	}
	return true
}

// shortfall is what an answer leaves unserved.
type shortfall struct {
	constraint bool
	gangs      int
	// weight of the requests: a GPU as fourteen CPUs, about what clouds charge.
	weight float64
}

func (a answer) shortfall(s planner.Snapshot) shortfall {
	const gpu = 14
	short := shortfall{constraint: a.unservedConstraint}
	for _, unserved := range a.unservedGangs {
		if unserved {
			short.gangs++
		}
	}
	for i, n := range a.unservedRequests {
		b := s.Requests[i].Bundle
		short.weight += float64(n) * (b[raydemand.CPU].Float() + gpu*b[raydemand.GPU].Float())
	}
	return short
}

// compare orders by what both planners serve first: request_resources, then gangs, then requests.
func (s shortfall) compare(other shortfall) int {
	if s.constraint != other.constraint {
		if s.constraint {
			return 1
		}
		return -1
	}
	if order := cmp.Compare(s.gangs, other.gangs); order != 0 {
		return order
	}
	if math.Abs(s.weight-other.weight) <= cent {
		return 0
	}
	return cmp.Compare(s.weight, other.weight)
}
