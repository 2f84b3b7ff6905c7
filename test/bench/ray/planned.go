package main

import (
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// What follows explains differences by what a planner decides about the snapshot.

// withoutDoomed takes away the pods that a maximum stops, and the room they fill: Ray's planner places demand on pods
// that it stops in the same pass.
func withoutDoomed(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	if err != nil {
		return false // it raised, for another cause
	}
	return takeAway(&v.ray, rays.stop)
}

// withoutVictims takes away the pods that Heliostat stops for a maximum, and the room they fill: of pods that are equal
// in everything that counts the planners stop different ones, and the others differ in what they can still serve.
func withoutVictims(v *view, _ duel) bool {
	ours := answerOf(v.us, planner.Compute(v.us, v.us.Policy))
	changed := takeAway(&v.us, ours.stop)
	return takeAway(&v.ray, ours.stop) || changed
}

// takeAway removes pods that are stopped for a maximum, and lowers the maxima by their number: what they fill stays full.
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
	editGroups(s, func(g *planner.Group) bool {
		g.Max = max(g.Max-gone[g.Name]/g.NumOfHosts, left[g.Name]/g.NumOfHosts, g.Min)
		return true
	})
	if s.MaxWorkers != nil {
		s.MaxWorkers = pointer(max(*s.MaxWorkers-totalGone, totalLeft, 1))
	}
	return totalGone > 0
}

// withoutUnmetConstraint drops request_resources that cannot be had in full. Heliostat keeps what there is of it from
// idling out, since its groups may grow again.
func withoutUnmetConstraint(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	if err != nil || !rays.unservedConstraint {
		return false
	}
	v.us.Constraint = nil
	return true
}

// withoutLimits lifts all maxima, where Heliostat serves as much under them as Ray or more: which demand goes unserved
// under a limit is a choice.
func withoutLimits(v *view, d duel) bool {
	rays, _, err := d.ray.plan(v.ray)
	if err != nil {
		return false
	}
	ours := answerOf(v.us, planner.Compute(v.us, v.us.Policy))
	if ours.missing(v.us) > rays.missing(v.us)*(1+cent) {
		return false
	}
	for _, s := range []*planner.Snapshot{&v.ray, &v.us} {
		s.MaxWorkers = nil
		editGroups(s, func(g *planner.Group) bool { g.Max += 1000; return true })
	}
	return true
}

// missing weighs what is not served: a GPU as fourteen CPUs, about what clouds charge.
func (a answer) missing(s planner.Snapshot) (sum float64) {
	const gpu = 14
	weight := func(b raydemand.Bundle) float64 {
		return b[raydemand.CPU].Float() + gpu*b[raydemand.GPU].Float()
	}
	for i, n := range a.unservedRequests {
		sum += float64(n) * weight(s.Requests[i].Bundle)
	}
	for i, unserved := range a.unservedGangs {
		for _, b := range s.Gangs[i].Bundles {
			if unserved {
				sum += weight(b)
			}
		}
	}
	return sum
}
