package placing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DifferentNodes counts the nodes within a domain that can hold a bundle of an option, including possible launches.
func (p *Placer) DifferentNodes(l *Ledger, o fleet.Option, within fleet.Domain) (n int64) {
	for k := range l.Classes {
		class := &l.Classes[k]
		if within.Admits(class.Shape.Labels) &&
			slices.ContainsFunc(o.Items, func(it *vector.Item) bool { return class.Free.Times(it.Need, 1) == 1 }) {
			n += class.Count
		}
	}
	var fresh int64
	for i := range p.Groups {
		if s := p.Groups[i].Shape; within.Admits(s.Labels) && vector.SuitsAny(o.Items, s) {
			fresh = min(fresh+l.Room[i], vector.MaxCount)
		}
	}
	return n + min(fresh, l.Spare)
}

// HasPlaces reports whether an option could be placed if nothing else were: each bundle has a place, all bundles
// together fit in the total, and there are enough nodes for bundles that cannot share one. Possible launches count.
func (p *Placer) HasPlaces(l *Ledger, g *fleet.Gang, o fleet.Option, most []float64) bool {
	asked := make([]float64, len(p.Names))
	for _, it := range o.Items {
		if !p.hasPlace(l, it) {
			return false
		}
		for _, t := range it.Need {
			asked[t.Resource] += t.Amount.Float() * float64(it.Request.Count)
			if asked[t.Resource] > most[t.Resource]*(1+1e-9) {
				return false
			}
		}
	}
	return g.Strategy != raydemand.StrictSpread || p.DifferentNodes(l, o, fleet.Domain{}) >= vector.BundlesOf(o.Items)
}

// hasPlace reports whether one bundle fits on existing nodes, or on pods that some group may still launch.
func (p *Placer) hasPlace(l *Ledger, it *vector.Item) bool {
	for i := range p.Groups {
		if g := &p.Groups[i]; min(l.Room[i], l.Spare) >= g.Hosts && it.Suits(g.Shape) {
			return true
		}
	}
	return slices.ContainsFunc(l.Classes, func(l NodeClass) bool {
		return it.Rank[l.Shape.Labels] != vector.NoMatch && l.Free.Times(it.Need, 1) == 1
	})
}

// MostFree returns, by resource, what is free plus the most that may be launched: all pods of the groups, or as many of
// the largest pods as all groups together may have.
func (p *Placer) MostFree(l *Ledger) []float64 {
	most, fresh, largest := make([]float64, len(p.Names)), make([]float64, len(p.Names)), make([]float64, len(p.Names))
	for i := range l.Classes {
		for r, amount := range p.Named(l.Classes[i].Free) {
			most[r] += amount.Float() * float64(l.Classes[i].Count)
		}
	}
	for i := range p.Groups {
		if l.Room[i] == 0 {
			continue
		}
		for r, amount := range p.Named(p.Groups[i].Shape.Total) {
			fresh[r] += amount.Float() * float64(l.Room[i])
			largest[r] = max(largest[r], amount.Float())
		}
	}
	for r := range most {
		most[r] += min(fresh[r], largest[r]*float64(l.Spare))
	}
	return most
}
