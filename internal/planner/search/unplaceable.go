package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
)

// A gang of which some bundle has no place at all, whatever else is placed where, is not planned for: it is reported as
// not served, and what is launched for everything else does not depend on it.

// gangsWithPlaces lists the gangs that could be had by some option if nothing else were placed, as far as looking at
// bundles and sums shows.
func (p *Search) gangsWithPlaces() (all []*fleet.Gang) {
	if len(p.Gangs) == 0 {
		return nil
	}
	l := p.Open(p.Base, make([]int64, len(p.Groups)))
	most := p.MostFree(l)
	for gangs := p.Gangs; len(gangs) > 0; {
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
func (p *Search) addUnplaceable(out *Outcome) {
	if len(p.placeable) == len(p.Gangs) {
		return
	}
	for _, g := range p.Gangs {
		if g.Unplaceable {
			out.Gangs = append(out.Gangs, g)
		}
	}
	slices.SortFunc(out.Gangs, func(a, b *fleet.Gang) int { return a.Number - b.Number })
}
