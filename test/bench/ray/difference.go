package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// aspect is how two plans for one snapshot differ.
type aspect string

// With raised, Ray's planner has no plan at all. In the next three, Ray's plan looks better; in the others,
// Heliostat's.
const (
	raised     aspect = "has a plan, Ray raised"
	servesLess aspect = "serves less"
	dearer     aspect = "is dearer"
	stops      aspect = "stops others"
	servesMore aspect = "serves more"
	cheaper    aspect = "is cheaper"
	stopsMore  aspect = "stops more idle ones"
	// overfull is not a difference but a mistake: the demand that the plan serves does not fit.
	overfull aspect = "serves what does not fit"
)

// better reports whether the aspect is in favor of Heliostat.
func (a aspect) better() bool { return a == servesMore || a == cheaper || a == stopsMore }

// difference is one aspect in which two plans differ, with details.
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

// unservedOnly names the first demand that one planner leaves unserved and the other serves, or returns "".
func unservedOnly(s planner.Snapshot, one, other answer) string {
	for i, request := range s.Requests {
		if one.unservedRequests[i] > other.unservedRequests[i] {
			return fmt.Sprintf(
				"%s: leaves %d of %d, the other %d",
				keyOf(request),
				one.unservedRequests[i],
				request.Count,
				other.unservedRequests[i],
			)
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

// costs returns the cost of launches: a price if all groups have one, else the amount of each resource.
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

// isDearer compares launches by price if all groups have one. Otherwise the other's launches must have no more of any
// resource and less of one, in as many pods or fewer, because amounts of different resources have no common unit.
func isDearer(s planner.Snapshot, than, plan answer) bool {
	thanPrice, thanHeld := costs(s, than)
	price, held := costs(s, plan)
	if held == nil {
		return price > thanPrice*(1+cent)
	}
	return held.Fits(thanHeld) && than.pods() <= plan.pods() && (!thanHeld.Fits(held) || than.pods() < plan.pods())
}

// stopsOthers describes how the stops are worse: more or other pods above a maximum, or fewer idle ones. Two pods that
// are equally long idle, or both not joined, are equivalent.
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

// compare lets both planners plan the view and returns how the plans differ.
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
