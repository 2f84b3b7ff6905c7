package place

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Possible reports whether some group, or some node that stays, could ever serve one bundle. A maximum of 0 is a limit
// like any other. Ray may cancel demand that is impossible, so demand that only a limit prevents, or that depends
// on something unknown, is never called impossible. A group whose pods no node will ever hold serves nothing.
func (p *Search) Possible(it *Item) bool {
	for i := range p.Groups {
		if len(p.Wants(i, it, nil)) > 0 {
			return true
		}
	}
	return p.Certain(it)
}

// Certain reports whether some group, or some node that stays, could serve one bundle by what is known.
func (p *Search) Certain(it *Item) bool {
	for i := range p.Groups {
		if it.Suits(p.Groups[i].Shape) && !p.Groups[i].Hopeless() {
			return true
		}
	}
	for i := range p.Base {
		if it.Suits(p.Base[i].Shape) {
			return true
		}
	}
	return false
}

// Wants returns what a new pod of a group must turn out to announce to serve an item, or an item of a gang; nil if no
// announcement makes a difference.
func (p *Search) Wants(i int, it *Item, gang *Gang) []Awaited {
	g := &p.Groups[i]
	awaited, ok := p.awaits(g, it)
	if g.Hopeless() || !ok && !it.Suits(g.Shape) {
		return nil
	}
	if gang == nil || gang.TopologyLabel == "" || gang.Held {
		return awaited
	}
	if domain := g.openLabel(gang.TopologyLabel); domain != nil {
		return append(awaited, Awaited{Announced: domain})
	}
	return awaited
}

// differentNodes counts the nodes within a domain that can hold a bundle of an option, including possible launches.
func (p *Search) differentNodes(l *Ledger, o Option, within Domain) (n int64) {
	for k := range l.classes {
		class := &l.classes[k]
		if within.Admits(class.Shape.Labels) &&
			slices.ContainsFunc(o.Items, func(it *Item) bool { return class.free.Times(it.Need, 1) == 1 }) {
			n += class.count
		}
	}
	var fresh int64
	for i := range p.Groups {
		if s := p.Groups[i].Shape; within.Admits(s.Labels) && SuitsAny(o.Items, s) {
			fresh = min(fresh+l.room[i], MaxCount)
		}
	}
	return n + min(fresh, l.spare)
}

// hasPlaces reports whether an option could be placed if nothing else were: each bundle has a place, all bundles
// together fit in the total, and there are enough nodes for bundles that cannot share one. Possible launches count.
func (p *Search) hasPlaces(l *Ledger, g *Gang, o Option, most []float64) bool {
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
	return g.Strategy != raydemand.StrictSpread || p.differentNodes(l, o, Domain{}) >= BundlesOf(o.Items)
}

// hasPlace reports whether one bundle fits on existing nodes, or on pods that some group may still launch.
func (p *Search) hasPlace(l *Ledger, it *Item) bool {
	for i := range p.Groups {
		if g := &p.Groups[i]; min(l.room[i], l.spare) >= g.Hosts && it.Suits(g.Shape) {
			return true
		}
	}
	return slices.ContainsFunc(l.classes, func(l NodeClass) bool {
		return it.Rank[l.Shape.Labels] != NoMatch && l.free.Times(it.Need, 1) == 1
	})
}

// mostFree returns, by resource, what is free plus the most that may be launched: all pods of the groups, or as many of
// the largest pods as all groups together may have.
func (p *Search) mostFree(l *Ledger) []float64 {
	most, fresh, largest := make([]float64, len(p.Names)), make([]float64, len(p.Names)), make([]float64, len(p.Names))
	for i := range l.classes {
		for r, amount := range p.Named(l.classes[i].free) {
			most[r] += amount.Float() * float64(l.classes[i].count)
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

// A gang with a bundle that has no place at all, regardless of other demand, is not planned for. It is reported as
// unserved, and launches for other demand do not depend on it.

// gangsWithPlaces lists the gangs that some option could place if nothing else were placed, as far as single bundles
// and totals show.
func (p *Search) gangsWithPlaces() (all []*Gang) {
	if len(p.Gangs) == 0 {
		return nil
	}
	l := p.open(p.Base, make([]int64, len(p.Groups)))
	p.untouched = l
	most := p.mostFree(l)
	for gangs := p.Gangs; len(gangs) > 0; {
		var front []*Gang
		front, gangs = cutIdentical(gangs)
		if slices.ContainsFunc(
			front[0].Options,
			func(o Option) bool { return p.hasPlaces(l, front[0], o, most) },
		) {
			all = append(all, front...)
			continue
		}
		for _, g := range front {
			g.unplaceable = true
		}
	}
	return all
}

// TooSmall reports whether an option of a gang does not fit in a domain, even if nothing else is placed.
func (p *Search) TooSmall(g *Gang, option int, within Domain) bool {
	o := g.Options[option]
	if len(p.roomy(p.untouched, []Domain{within, within}, o)) == 0 { // it does not look at a single domain
		return true
	}
	return g.Strategy == raydemand.StrictSpread && p.differentNodes(p.untouched, o, within) < BundlesOf(o.Items)
}

// OpenDomains lists where a gang may be placed, before anything is placed.
func (p *Search) OpenDomains(g *Gang) []Domain { return p.domains(p.untouched, g) }
