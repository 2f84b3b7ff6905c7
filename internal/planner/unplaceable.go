package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// A gang of which some bundle has no place at all, whatever else is placed where, is not planned for: it is told as not served, and what is
// launched for everything else does not depend on it.

// gangsWithPlaces lists the gangs that could be had by some option if nothing else were placed, as far as looking at bundles and sums tells.
func (p *planning) gangsWithPlaces() (all []*gang) {
	if len(p.gangs) == 0 {
		return nil
	}
	l := p.open(p.base, make([]int64, len(p.groups)))
	most := p.mostFree(l)
	for gangs := p.gangs; len(gangs) > 0; {
		var front []*gang
		front, gangs = crowd(gangs)
		if slices.ContainsFunc(front[0].options, func(o option) bool { return p.hasPlaces(l, front[0], o, most) }) {
			all = append(all, front...)
			continue
		}
		for _, g := range front {
			g.nowhere = true
		}
	}
	return all
}

// hasPlaces reports whether each bundle of an option has a place on what is there or may be launched, all of them are not more than
// there is in sum, and those that no two of may share a node find nodes enough.
func (p *Placer) hasPlaces(l *ledger, g *gang, o option, most []float64) bool {
	asked := make([]float64, len(p.Names))
	for _, it := range o.items {
		if !p.hasPlace(l, it) {
			return false
		}
		for _, t := range it.Need {
			if asked[t.Resource] += t.Amount.Float() * float64(it.Request.Count); asked[t.Resource] > most[t.Resource]*(1+1e-9) {
				return false
			}
		}
	}
	return g.Strategy != raydemand.StrictSpread || p.differentNodes(l, o, domain{}) >= vector.BundlesOf(o.items)
}

// hasPlace reports whether one bundle fits on what is there, or on pods that some group may still launch.
func (p *Placer) hasPlace(l *ledger, it *vector.Item) bool {
	for i := range p.groups {
		if g := &p.groups[i]; min(l.room[i], l.spare) >= g.hosts && it.Suits(g.shape) {
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
	for i := range p.groups {
		if l.room[i] == 0 {
			continue
		}
		for r, amount := range p.Named(p.groups[i].shape.Total) {
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
		if g.nowhere {
			out.gangs = append(out.gangs, g)
		}
	}
	slices.SortFunc(out.gangs, func(a, b *gang) int { return a.number - b.number })
}
