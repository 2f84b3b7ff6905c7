package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// aspect is in what two plans for one snapshot differ.
type aspect string

// With raised, Ray's planner has no plan at all. In the next three Ray's plan is, on the face of it, the better one, in the
// others Heliostat's.
const (
	raised     aspect = "has a plan, Ray raised"
	servesLess aspect = "serves less"
	dearer     aspect = "is dearer"
	stops      aspect = "stops others"
	servesMore aspect = "serves more"
	cheaper    aspect = "is cheaper"
	stopsMore  aspect = "stops more idle ones"
	// overfull is no difference but a mistake: what the plan says it serves cannot be placed.
	overfull aspect = "serves what does not fit"
)

// better reports whether the aspect is for Heliostat.
func (a aspect) better() bool { return a == servesMore || a == cheaper || a == stopsMore }

// difference is one aspect in which two plans differ, with what differs.
type difference struct {
	aspect aspect
	detail string
}

// differences compares what plans for one snapshot serve and stop.
func differences(s planner.Snapshot, rays, ours answer) []difference {
	var found []difference
	if detail := unservedOnly(s, ours, rays); detail != "" {
		found = append(found, difference{servesLess, detail})
	} else if detail := unservedOnly(s, rays, ours); detail != "" {
		found = append(found, difference{servesMore, detail})
	}
	if detail := stopsOthers(s, rays, ours); detail != "" {
		found = append(found, difference{stops, detail})
	} else if r, o := rays.idleStops(), ours.idleStops(); o > r {
		found = append(found, difference{stopsMore, fmt.Sprintf("%d idle ones, Ray %d", o, r)})
	}
	return found
}

// unservedOnly names the first demand that one planner leaves unserved and the other serves; "" when there is none.
func unservedOnly(s planner.Snapshot, one, other answer) string {
	for i, request := range s.Requests {
		if one.unservedRequests[i] > other.unservedRequests[i] {
			return fmt.Sprintf("%s: leaves %d of %d, the other %d", keyOf(request), one.unservedRequests[i], request.Count, other.unservedRequests[i])
		}
	}
	for i, gang := range s.Gangs {
		if one.unservedGangs[i] && !other.unservedGangs[i] {
			return fmt.Sprintf("gang %d: %s of %d", i, gang.Strategy, len(gang.Bundles))
		}
	}
	if one.unservedConstraint && !other.unservedConstraint {
		return "request_resources"
	}
	return ""
}

// servable returns the snapshot with only the demand that an answer serves.
func servable(s planner.Snapshot, a answer) planner.Snapshot {
	s.Requests = slices.Clone(s.Requests)
	for i := range s.Requests {
		s.Requests[i].Count -= a.unservedRequests[i]
	}
	s.Requests = slices.DeleteFunc(s.Requests, func(r raydemand.Request) bool { return r.Count == 0 })
	var gangs []raydemand.Gang
	for i, gang := range s.Gangs {
		if !a.unservedGangs[i] {
			gangs = append(gangs, gang)
		}
	}
	s.Gangs = gangs
	if a.unservedConstraint {
		s.Constraint = nil
	}
	return s
}

// costs tells what launching costs: a price where all groups have one, else what is held of each resource.
func costs(s planner.Snapshot, a answer) (price float64, held raydemand.Bundle) {
	priced := !slices.ContainsFunc(s.Groups, func(g planner.Group) bool { return g.Price == nil })
	if priced {
		return a.price(s), nil
	}
	held = raydemand.Bundle{}
	for _, g := range s.Groups {
		for name, amount := range g.Resources {
			held[name] += amount * raydemand.Amount(a.launch[g.Name])
		}
	}
	return 0, held
}

// isDearer compares what is launched: by price where all groups have one. Where they have none, the other's launches must
// hold no more of anything and less of something, in as many pods or fewer: amounts of different resources have no
// common unit.
func isDearer(s planner.Snapshot, than, plan answer) bool {
	thanPrice, thanHeld := costs(s, than)
	price, held := costs(s, plan)
	if held == nil {
		return price > thanPrice*(1+cent)
	}
	return held.Fits(thanHeld) && than.pods() <= plan.pods() && (!thanHeld.Fits(held) || than.pods() < plan.pods())
}

// stopsOthers tells in what the stops differ for the worse: more or other pods over a maximum, or fewer idle ones. One of
// two pods that are idle as long and joined or not is as good as the other.
func stopsOthers(s planner.Snapshot, rays, ours answer) string {
	kinds := map[string]string{}
	for _, n := range s.Nodes {
		kinds[n.Pod] = fmt.Sprintf("%s idle for %g s", n.State, n.IdleSeconds)
	}
	count := func(a answer) map[string]int {
		counts := map[string]int{}
		for pod, reason := range a.stop {
			if reason != idleStop {
				counts[reason+": "+kinds[pod]]++
			}
		}
		return counts
	}
	if r, o := count(rays), count(ours); !maps.Equal(r, o) {
		return fmt.Sprintf("%v, Ray %v", o, r)
	}
	if r, o := rays.idleStops(), ours.idleStops(); o < r {
		return fmt.Sprintf("%d idle ones, Ray %d", o, r)
	}
	return ""
}

// idleStop is the reason of a stop for idleness, as both planners write it.
const idleStop = "idle"

func (a answer) idleStops() int {
	count := 0
	for _, reason := range a.stop {
		if reason == idleStop {
			count++
		}
	}
	return count
}

// duel lets both planners plan snapshots.
type duel struct{ ray *rayPlanner }

// compare lets both planners plan what they are shown and says in what the plans differ.
func (d duel) compare(v view) ([]difference, error) {
	rays, _, err := d.ray.plan(v.ray)
	if errors.Is(err, errRaised) {
		return []difference{{raised, err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	for group, count := range v.launched {
		rays.launch[group] += count
	}
	ours := answerOf(v.us, planner.Compute(v.us, v.us.Policy))
	found := differences(v.us, rays, ours)
	// What Ray leaves unserved costs nothing there, so for the price both serve what Ray serves.
	same := servable(v.us, rays)
	equal := answerOf(same, planner.Compute(same, same.Policy))
	detail := fmt.Sprintf("launches %v, Ray %v", equal.launch, rays.launch)
	switch {
	case isDearer(v.us, rays, equal):
		found = append(found, difference{dearer, detail})
	case isDearer(v.us, equal, rays):
		found = append(found, difference{cheaper, detail})
	}
	return found, nil
}
