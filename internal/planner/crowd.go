package planner

import (
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Equal gangs are placed together, so that the work depends on how many kinds of gangs there are and not on how many gangs.
// Nothing is lost by it: what n gangs ask for together can be dealt out to them afterwards. Where bundles may share nodes any
// way of dealing will do; a strictly packed gang is a single bundle; and n strictly spread gangs of which no node holds more
// than n bundles can be dealt out so that none has two on a node (the edges of a bipartite graph of degree n have n colours).

// run is a number of equal gangs that were placed together, by one of their options. What was placed for them is booked under the items
// of the first.
type run struct {
	gangs  []*fleet.Gang
	option int
	within fleet.Domain
}

// placeCrowd places as many of some equal gangs as it can, each whole, by the first option, then others by the next. It returns the
// ledger to go on with, and how many are served: those in front.
func (p *Placer) placeCrowd(l *ledger, gangs []*fleet.Gang) (*ledger, int) {
	served := 0
	for o := range gangs[0].Options {
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
func (p *Placer) placeMost(l *ledger, gangs []*fleet.Gang, o int) (*ledger, int) {
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
		for i, it := range r.gangs[0].Options[r.option].Items {
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
			to(r.gangs[g].Options[r.option].Items[i], part)
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
