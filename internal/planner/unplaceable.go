package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
)

// A gang of which some bundle has no place at all, whatever else is placed where, is not planned for: it is told as not served, and what is
// launched for everything else does not depend on it.

// gangsWithPlaces lists the gangs that could be had by some option if nothing else were placed, as far as looking at bundles and sums tells.
func (p *planning) gangsWithPlaces() (all []*fleet.Gang) {
	if len(p.gangs) == 0 {
		return nil
	}
	l := p.Open(p.base, make([]int64, len(p.Groups)))
	most := p.MostFree(l)
	for gangs := p.gangs; len(gangs) > 0; {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		if slices.ContainsFunc(front[0].Options, func(o fleet.Option) bool { return p.HasPlaces(l, front[0], o, most) }) {
			all = append(all, front...)
			continue
		}
		for _, g := range front {
			g.Unplaceable = true
		}
	}
	return all
}

// addUnplaceable adds the gangs that were not planned for to those that are not served.
func (p *planning) addUnplaceable(out *outcome) {
	if len(p.placeable) == len(p.gangs) {
		return
	}
	for _, g := range p.gangs {
		if g.Unplaceable {
			out.gangs = append(out.gangs, g)
		}
	}
	slices.SortFunc(out.gangs, func(a, b *fleet.Gang) int { return a.Number - b.Number })
}
