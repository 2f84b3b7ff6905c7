package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// outcome is what one round of placing all demand comes to.
type outcome struct {
	// launched counts the pods beyond those given, by group.
	launched []int64
	// unserved counts the bundles of each request item that wait still.
	unserved []int64
	gangs    []*fleet.Gang // not served
	claims   []int         // not served, by number
	claimed  [][]int64     // bundles of each item of those that are left: all, unless a wave launches a part
	used     []bool        // nodes that demand was placed on
	kept     int           // those of them that would leave as idle
	heldOver []bool        // nodes that demand is to leave, and that stay until it has; nil where there are none
	joinable bool          // some of what it launches could have been chosen jointly
	// reordered: found in another order than the first, because that is better.
	reordered bool
	runs      []run
	lots      int // what the ledger held in the end: kinds of nodes, those that the plan launches among them
	log       []entry
	waits     []wait
}

// round places all demand, with pods already planned by group, and launches what is missing in the given way.
func (p *planning) round(given []int64, how strategy) outcome {
	return p.roundIn(given, order{how: how})
}

func (p *planning) roundIn(given []int64, in order) outcome {
	l := p.open(p.base, given)
	l.how = in.how
	if in.stepwise {
		l.hide()
		p.revealMinimum(l)
	}
	out := outcome{used: make([]bool, len(p.Nodes))}
	p.launchMinimum(l, given)
	for i, c := range p.claims {
		if left := p.placeClaim(l, c, given, &out); left != nil {
			out.claims, out.claimed = append(out.claims, i), append(out.claimed, left)
		}
	}
	b := p.newBatch("", p.requests, l.how)
	if in.requestsFirst {
		p.place(l, b)
	}
	l = p.placeGangs(l, in, &out)
	if !in.requestsFirst {
		p.place(l, b)
	}
	out.unserved, out.launched, out.log, out.lots = b.left, l.launched, l.log, len(l.lots)
	out.waits, out.runs, out.joinable = l.waits, l.runs, l.joinable
	out.markUsed(l)
	for _, n := range p.overdueNodes {
		if out.used[n] {
			out.kept++
		}
	}
	return out
}

// open starts a ledger on which the given pods are on their way. They stand where the next snapshot's pods will
// stand, so that the next plan finds the same places, after equal ones that were asked for earlier.
func (p *Placer) open(lots []lot, given []int64) *ledger {
	l := &ledger{lots: slices.Clone(lots), launched: make([]int64, len(p.Groups)), spare: p.Spare(given)}
	for i := range p.Groups {
		g := &p.Groups[i]
		l.room = append(l.room, g.Room(given[i]))
		if given[i] > 0 {
			planned := p.freshLot(g, given[i], true)
			at, _ := slices.BinarySearchFunc(l.lots, planned, func(a, b lot) int { return cmp.Or(p.soonestFirst(&a, &b), -1) })
			l.lots = slices.Insert(l.lots, at, planned)
		}
	}
	p.bindPools(l, given)
	if p.whole != nil {
		p.capLedger(l, given)
	}
	return l
}

// launchMinimum brings every group to its minimum. These pods then serve demand like any other.
func (p *Placer) launchMinimum(l *ledger, given []int64) {
	for i := range p.Groups {
		g := &p.Groups[i]
		short := vector.RoundUp(max(0, g.MinPods-g.Remaining()-given[i]), g.Hosts)
		n := min(short, l.room[i], l.spare)
		if n -= n % g.Hosts; n > 0 {
			l.lots = append(l.lots, l.launch(g, n))
		}
	}
}

// placeClaim places a claim on total capacities, on a ledger of its own: what runs already counts. When the whole
// claim cannot be had nothing is launched for it, and the nodes it would use are kept all the same: letting go of
// half of what was asked for helps nobody. It returns the bundles of each item that are left, nil when none are.
func (p *planning) placeClaim(l *ledger, c claim, given []int64, out *outcome) []int64 {
	if c.refused {
		return c.counts()
	}
	own := p.claimOn(l, given)
	if l.stepwise {
		own.hide()
		p.revealMinimum(own)
	}
	lifted := p.uncapped(own)
	b := p.newBatch(c.purpose, c.items, l.how)
	p.place(own, b)
	out.markUsed(own)
	p.keepFor(own, &c, out)
	l.joinable = l.joinable || own.joinable
	if !b.served() && !p.servedOn(lifted, c) {
		return c.counts()
	}
	if l.stepwise {
		left := own.hiddenOf(len(p.Groups))
		for i, n := range l.hiddenOf(len(p.Groups)) {
			l.reveal(i, n-left[i])
		}
	}
	for i, n := range own.launched {
		if n > 0 {
			l.lots = append(l.lots, l.launch(&p.Groups[i], n))
		}
	}
	l.log, l.waits = append(l.log, own.log...), append(l.waits, own.waits...)
	if b.served() {
		return nil
	}
	l.reserveRest(lifted.launched, own.launched)
	return b.left
}

// claimOn opens a claim's own ledger: all that is there, whatever is in use, and the limits as they are left on another.
func (p *planning) claimOn(l *ledger, given []int64) *ledger {
	own := p.open(p.totals, given)
	own.how = l.how
	for i, n := range l.launched {
		if n > 0 {
			own.lots = append(own.lots, p.freshLot(&p.Groups[i], n, true))
		}
	}
	own.room, own.spare = slices.Clone(l.room), l.spare
	own.taken, own.pods = slices.Clone(l.taken), slices.Clone(l.pods)
	own.caps.copyFrom(&l.caps)
	return own
}

// gangRetries is how often gangs are placed in another order when some were not served; maxRetriedCrowds bounds how many
// kinds of gangs that is worth it for.
const (
	gangRetries      = 2
	maxRetriedCrowds = 100
)

// placeGangs places one kind of gangs after the other, those hardest to place first. When some are left, they go first once
// more: an easy one may have taken what only it could have spared.
func (p *planning) placeGangs(l *ledger, in order, out *outcome) *ledger {
	if len(p.placeable) == 0 {
		return l
	}
	gangs := p.placeable
	if l.how.raysOrder() {
		gangs = gangsAsRay(gangs)
	}
	if in.accelerated {
		gangs = slices.Clone(gangs)
		slices.SortStableFunc(gangs, func(a, b *fleet.Gang) int { return vector.CompareBool(b.Accelerated(), a.Accelerated()) })
	}
	best, failed := p.placeInOrder(l, gangs)
	for retry := 0; retry < gangRetries && len(failed) > 0 && p.crowds <= maxRetriedCrowds; retry++ {
		order := slices.Clone(failed)
		for _, g := range gangs {
			if !slices.Contains(failed, g) {
				order = append(order, g)
			}
		}
		other, left := p.placeInOrder(l, order)
		if len(left) >= len(failed) {
			p.release(other)
			break
		}
		p.release(best)
		best, failed = other, left
	}
	slices.SortFunc(failed, func(a, b *fleet.Gang) int { return a.Number - b.Number })
	out.gangs = failed
	return best
}

// placeInOrder places gangs on a copy of the ledger and returns those that are not served. Equal gangs fail together:
// capacity only shrinks.
func (p *planning) placeInOrder(from *ledger, gangs []*fleet.Gang) (*ledger, []*fleet.Gang) {
	l := p.trial(from)
	var left []*fleet.Gang
	failed := map[string]bool{}
	for len(gangs) > 0 {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		if front[0].Deferred {
			left = append(left, front...)
			continue
		}
		served, key := 0, front[0].Key
		if !failed[key] {
			l, served = p.placeCrowd(l, front)
			if own, n := p.placeCapped(l, front[served:]); n > 0 {
				l, served = own, served+n
			}
		}
		if served == len(front) {
			continue
		}
		left = append(left, front[served:]...)
		// A gang that holds nodes already is bound to them, so its failure says nothing about others.
		failed[key] = failed[key] || !front[0].Held
	}
	return l, left
}

func (o *outcome) markUsed(l *ledger) {
	for i := range l.lots {
		if l.lots[i].touched {
			for _, n := range l.lots[i].members {
				o.used[n] = true
			}
		}
	}
}
