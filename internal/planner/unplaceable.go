package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// A gang of which some bundle has no place at all, whatever else is placed where, is not planned for: it is told as not served, and what is
// launched for everything else does not depend on it.

// gangsWithPlaces lists the gangs that could be had by some option if nothing else were placed, as far as looking at bundles and sums tells.
func (p *planning) gangsWithPlaces() (all []*fleet.Gang) {
	if len(p.gangs) == 0 {
		return nil
	}
	l := p.open(p.base, make([]int64, len(p.Groups)))
	most := p.mostFree(l)
	for gangs := p.gangs; len(gangs) > 0; {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		if slices.ContainsFunc(front[0].Options, func(o fleet.Option) bool { return p.hasPlaces(l, front[0], o, most) }) {
			all = append(all, front...)
			continue
		}
		for _, g := range front {
			g.Unplaceable = true
		}
	}
	return all
}

// hasPlaces reports whether each bundle of an option has a place on what is there or may be launched, all of them are not more than
// there is in sum, and those that no two of may share a node find nodes enough.
func (p *Placer) hasPlaces(l *ledger, g *fleet.Gang, o fleet.Option, most []float64) bool {
	asked := make([]float64, len(p.Names))
	for _, it := range o.Items {
		if !p.hasPlace(l, it) {
			return false
		}
		for _, t := range it.Need {
			if asked[t.Resource] += t.Amount.Float() * float64(it.Request.Count); asked[t.Resource] > most[t.Resource]*(1+1e-9) {
				return false
			}
		}
	}
	return g.Strategy != raydemand.StrictSpread || p.differentNodes(l, o, fleet.Domain{}) >= vector.BundlesOf(o.Items)
}

// hasPlace reports whether one bundle fits on what is there, or on pods that some group may still launch.
func (p *Placer) hasPlace(l *ledger, it *vector.Item) bool {
	for i := range p.Groups {
		if g := &p.Groups[i]; min(l.room[i], l.spare) >= g.Hosts && it.Suits(g.Shape) {
			return true
		}
	}
	return slices.ContainsFunc(l.lots, func(l lot) bool { return it.Rank[l.shape.Labels] != vector.NoMatch && l.free.Times(it.Need, 1) == 1 })
}

// mostFree is by resource what is free, and the most that may be launched: all that the groups could, or as many of the largest pods as
// all groups together may have.
func (p *Placer) mostFree(l *ledger) []float64 {
	most, fresh, largest := make([]float64, len(p.Names)), make([]float64, len(p.Names)), make([]float64, len(p.Names))
	for i := range l.lots {
		for r, amount := range p.Named(l.lots[i].free) {
			most[r] += amount.Float() * float64(l.lots[i].count)
		}
	}
	for i := range p.Groups {
		if l.room[i] == 0 {
			continue
		}
		for r, amount := range p.Named(p.Groups[i].Shape.Total) {
			fresh[r] += amount.Float() * float64(l.room[i])
			largest[r] = max(largest[r], amount.Float())
		}
	}
	for r := range most {
		most[r] += min(fresh[r], largest[r]*float64(l.spare))
	}
	return most
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
