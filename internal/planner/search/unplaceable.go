package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
)

// A gang with a bundle that has no place at all, regardless of other demand, is not planned for. It is reported as
// unserved, and launches for other demand do not depend on it.

// gangsWithPlaces lists the gangs that some option could place if nothing else were placed, as far as single bundles
// and totals show.
func (p *Search) gangsWithPlaces() (all []*fleet.Gang) {
	if len(p.Gangs) == 0 {
		return nil
	}
	l := p.Open(p.Base, make([]int64, len(p.Groups)))
	most := p.MostFree(l)
	for gangs := p.Gangs; len(gangs) > 0; {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		if slices.ContainsFunc(
			front[0].Options,
			func(o fleet.Option) bool { return p.HasPlaces(l, front[0], o, most) },
		) {
			all = append(all, front...)
			continue
		}
		for _, g := range front {
			g.Unplaceable = true
		}
	}
	return all
}

// addUnplaceable adds the gangs that were not planned for to the unserved ones.
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
