package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Equal gangs are placed together, so that the work depends on how many kinds of gangs there are and not on how many gangs.
// Nothing is lost by it: what n gangs ask for together can be dealt out to them afterwards. Where bundles may share nodes any
// way of dealing will do; a strictly packed gang is a single bundle; and n strictly spread gangs of which no node holds more
// than n bundles can be dealt out so that none has two on a node (the edges of a bipartite graph of degree n have n colours).

// run is a number of equal gangs that were placed together, by one of their options. What was placed for them is booked under the items
// of the first.
type run struct {
	gangs  []*gang
	option int
	within domain
}

// kindOf is the least that equal gangs have in common.
type kindOf struct {
	strategy        raydemand.Strategy
	topology        string
	bundles, others int
	all             raydemand.Amount
}

func kindOfGang(g *raydemand.Gang) kindOf {
	k := kindOf{strategy: g.Strategy, topology: g.TopologyLabel, bundles: len(g.Bundles), others: len(g.Fallbacks)}
	for _, b := range g.Bundles {
		for _, amount := range b {
			k.all += amount
		}
	}
	return k
}

// asksAs reports whether two gangs are written in the same words.
func asksAs(a, b *raydemand.Gang) bool {
	sameBundles := func(a, b []raydemand.Bundle) bool { return slices.EqualFunc(a, b, raydemand.Bundle.Equal) }
	sameConstraint := func(a, b raydemand.Constraint) bool {
		return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values)
	}
	sameSelectors := func(a, b []raydemand.Selector) bool {
		return slices.EqualFunc(a, b, func(a, b raydemand.Selector) bool { return slices.EqualFunc(a, b, sameConstraint) })
	}
	return a.Strategy == b.Strategy && a.TopologyLabel == b.TopologyLabel &&
		sameBundles(a.Bundles, b.Bundles) && sameSelectors(a.BundleSelectors, b.BundleSelectors) &&
		slices.EqualFunc(a.Fallbacks, b.Fallbacks, sameBundles) &&
		slices.EqualFunc(a.FallbackSelectors, b.FallbackSelectors, sameSelectors)
}

// twin makes a gang of the same words ready, with items of its own.
func (g *gang) twin(of *raydemand.Gang) *gang {
	made := &gang{Gang: of, key: g.key, weight: g.weight, options: make([]option, len(g.options))}
	for o := range g.options {
		items := make([]vector.Item, len(g.options[o].items))
		pointers := make([]*vector.Item, len(items))
		for i, it := range g.options[o].items {
			items[i] = *it
			pointers[i] = &items[i]
		}
		made.options[o].items = pointers
	}
	return made
}

// crowds reports whether a gang may be placed together with equal ones. One that holds nodes is bound to those, and each of
// those that share a label looks for its own value.
func (g *gang) crowds(other *gang) bool {
	return g.key == other.key && !g.held && !other.held && g.TopologyLabel == ""
}

// crowd cuts off the gangs at the front that may be placed together.
func crowd(gangs []*gang) (front, rest []*gang) {
	n := 1
	for n < len(gangs) && gangs[0].crowds(gangs[n]) {
		n++
	}
	return gangs[:n], gangs[n:]
}

// crowds counts what of the gangs is placed one after the other.
func crowds(gangs []*gang) (n int) {
	for ; len(gangs) > 0; n++ {
		_, gangs = crowd(gangs)
	}
	return n
}

// placeCrowd places as many of some equal gangs as it can, each whole, by the first option, then others by the next. It returns the
// ledger to go on with, and how many are served: those in front.
func (p *Placer) placeCrowd(l *ledger, gangs []*gang) (*ledger, int) {
	served := 0
	for o := range gangs[0].options {
		rest := gangs[served:]
		if len(rest) == 0 {
			break
		}
		trial, n := p.placeMost(l, rest, o)
		if n > 0 {
			p.release(l)
			l, served = trial, served+n
		}
	}
	return l, served
}

// placeMost finds how many of the gangs an option serves: all, or else by bisection.
func (p *Placer) placeMost(l *ledger, gangs []*gang, o int) (*ledger, int) {
	best, served := p.placeOption(l, gangs, o)
	if served {
		return best, len(gangs)
	}
	least, most := 0, len(gangs)
	for most-least > 1 {
		n := (least + most) / 2
		if least == 0 {
			n = 1 // most often there is no room for any
		}
		trial, served := p.placeOption(l, gangs[:n], o)
		if !served {
			most = n
			continue
		}
		p.release(best)
		best, least = trial, n
	}
	return best, least
}

// share deals out to each of the gangs that were placed together what was booked under the items of the first: what is there already to
// those in front, what is to be launched to those at the end.
func (o *outcome) share() {
	for _, r := range o.runs {
		if len(r.gangs) < 2 {
			continue
		}
		for i, it := range r.gangs[0].options[r.option].items {
			o.deal(r, i, it)
		}
	}
}

func (o *outcome) deal(r run, i int, it *vector.Item) {
	each := it.Request.Count
	left := each * int64(len(r.gangs)) // bundles from the last one on that nobody has yet
	deal := func(n int64, to func(own *vector.Item, n int64)) {
		for n > 0 && left > 0 {
			g := (left - 1) / each
			part := min(n, left-g*each)
			to(r.gangs[g].options[r.option].items[i], part)
			n, left = n-part, left-part
		}
	}
	var log []entry
	for _, e := range o.log {
		if e.item != it {
			log = append(log, e)
			continue
		}
		deal(e.count, func(own *vector.Item, n int64) { log = append(log, entry{e.group, e.purpose, own, n}) })
	}
	var waits []wait
	for _, w := range o.waits {
		if w.item != it {
			waits = append(waits, w)
			continue
		}
		deal(w.count, func(own *vector.Item, n int64) { waits = append(waits, wait{own, n, w.since}) })
	}
	o.log, o.waits = log, waits
}
