package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
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
	p.untouched = l
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

// TooSmall reports whether an option of a gang does not fit in a domain, even if nothing else is placed.
func (p *Search) TooSmall(g *fleet.Gang, option int, within fleet.Domain) bool {
	o := g.Options[option]
	if len(p.Roomy(p.untouched, []fleet.Domain{within, within}, o)) == 0 { // it does not look at a single domain
		return true
	}
	return g.Strategy == raydemand.StrictSpread && p.DifferentNodes(p.untouched, o, within) < vector.BundlesOf(o.Items)
}

// OpenDomains lists where a gang may be placed, before anything is placed.
func (p *Search) OpenDomains(g *fleet.Gang) []fleet.Domain { return p.Domains(p.untouched, g) }
