package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/packing"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// batch is demand that is placed together: the requests, one gang, or one call of request_resources.
type batch struct {
	purpose string // for the log; empty for plain requests
	items   []*vector.Item
	left    []int64 // bundles of each item that wait
	// apart is how many bundles one node may take, 0 for as many as fit: of that many strictly spread gangs one each. turn
	// tells the gangs' own nodes from others.
	apart  int64
	turn   int
	within fleet.Domain
	// avoid and join name a gang whose former nodes are forbidden, or the only ones allowed; 0 is none.
	avoid, join int
	// order is in which items are placed on a node; nil is as they stand.
	order   []int
	memory  bool // some bundle asks for memory, so memory left over counts as waste
	scratch []int64
	looks   int64
}

func (p *Placer) newBatch(purpose string, items []*vector.Item, how strategy) *batch {
	b := &batch{purpose: purpose, items: items, left: make([]int64, len(items))}
	if how.raysOrder() {
		b.order = rayOrder(items)
	}
	for i, it := range items {
		if !it.Trivial() {
			b.left[i] = it.Request.Count
		}
		for _, t := range it.Need {
			b.memory = b.memory || phrase.IsMemory(p.Names[t.Resource])
		}
	}
	return b
}

// at is the number of the k-th item to be placed.
func (b *batch) at(k int) int {
	if b.order == nil {
		return k
	}
	return b.order[k]
}

// served reports whether nothing waits any more.
func (b *batch) served() bool {
	return !slices.ContainsFunc(b.left, func(n int64) bool { return n > 0 })
}

func (b *batch) admits(l *lot) bool {
	switch {
	case b.quota(l) == 0,
		b.avoid > 0 && slices.Contains(l.placed, b.avoid),
		b.join > 0 && !slices.Contains(l.placed, b.join):
		return false
	}
	return b.admitsLabels(l.shape.Labels)
}

func (b *batch) admitsLabels(set int) bool { return b.within.Admits(set) }

// quota is how many bundles one node of a lot may still take, whatever fits.
func (b *batch) quota(l *lot) int64 {
	switch {
	case b.apart == 0:
		return vector.MaxCount
	case l.gang == b.turn:
		return b.apart - l.taken
	}
	return b.apart
}

// place serves a batch: on nodes that run or already take demand, then on those on their way, then on new ones.
// Before new ones are launched, what is there is tried once more with all of the batch looked at together.
func (p *Placer) place(l *ledger, b *batch) {
	p.breakOff()
	defer func() { p.looks += b.looks }()
	if l.how.raysOrder() {
		p.placeAsRay(l, b)
		return
	}
	retry := p.retryable(l, b)
	var before *ledger
	left := slices.Clone(b.left)
	if retry {
		before = p.trial(l)
	}
	l.useStanding(b)
	p.useOnTheWay(l, b, false)
	if l.stepwise {
		p.useOnTheWay(l, b, true)
	}
	if retry && !b.served() {
		greedy := b.left
		b.left = left
		if p.fitJointly(before, b, greedy) {
			*l, *before = *before, *l
		} else {
			b.left = greedy
		}
	}
	p.release(before)
	p.launchBest(l, b)
}

// retryable reports whether a batch that does not fit one by one is worth a second look.
func (p *Placer) retryable(l *ledger, b *batch) bool {
	return len(l.lots) > 0 && len(l.lots) <= maxProgramBins && b.turn == 0 && p.steps <= maxPlanSteps && b.joinable()
}

// useStanding places item by item, largest first, on the first nodes that fit (first-fit decreasing). Selectors are
// tried in order. Work without accelerators takes accelerator nodes last; but before a request keeps a node from leaving
// it rides on one that has work anyway. Only a request: what comes after a gang may need the accelerators.
func (l *ledger) useStanding(b *batch) {
	ride := b.purpose == "" && l.anyOverdue()
	for i, it := range b.items {
		for choice := 0; choice < it.Alternatives && b.left[i] > 0; choice++ {
			if it.Accelerator {
				l.useLots(b, i, choice, func(*lot) bool { return true })
				continue
			}
			if ride {
				l.useLots(b, i, choice, func(lot *lot) bool { return !lot.shape.Accelerated && lot.stays() })
				l.useLots(b, i, choice, func(lot *lot) bool { return lot.shape.Accelerated && (lot.phase == fleet.Running || lot.touched) })
			}
			l.useLots(b, i, choice, func(lot *lot) bool { return !lot.shape.Accelerated })
			l.useLots(b, i, choice, func(lot *lot) bool { return lot.shape.Accelerated })
		}
	}
}

// stays reports whether a node stays even if nothing is placed on it now.
func (l *lot) stays() bool { return l.phase < fleet.Overdue || l.touched }

func (l *ledger) anyOverdue() bool {
	for i := range l.lots {
		if l.lots[i].phase == fleet.Overdue {
			return true
		}
	}
	return false
}

func (l *ledger) useLots(b *batch, i, choice int, wanted func(*lot) bool) {
	it := b.items[i]
	for at := 0; at < len(l.lots) && b.left[i] > 0; at++ {
		lot := &l.lots[at]
		b.looks++
		if lot.hidden || lot.phase == fleet.OnTheWay && !lot.touched {
			continue
		}
		if it.Rank[lot.shape.Labels] == choice && wanted(lot) && b.admits(lot) {
			at += l.useLot(at, b, i)
		}
	}
}

// useLot fills as many nodes of a lot as the item needs, the last one perhaps in part. It returns how many lots
// were split off in front of what is left.
func (l *ledger) useLot(at int, b *batch, i int) int {
	each := l.lots[at].free.Times(b.items[i].Need, min(b.left[i], b.quota(&l.lots[at])))
	if each == 0 {
		return 0
	}
	count, start := l.lots[at].count, at
	full := min(count, b.left[i]/each)
	if full > 0 {
		l.take(at, b, full, []packing.Portion{{Item: i, Count: each}})
		at++
	}
	if rest := b.left[i]; full < count && rest > 0 {
		l.take(at, b, 1, []packing.Portion{{Item: i, Count: rest}})
		at++
	}
	return max(at-start-1, 0)
}

// take places the portions on each of count nodes of a lot, one after the other. Of parts of cards that were found to fit in another order
// some may not fit in this one; those wait on.
func (l *ledger) take(at int, b *batch, count int64, portions []packing.Portion) {
	at = l.split(at, count)
	lot := &l.lots[at]
	lot.touched, lot.hidden = true, false
	lot.free = slices.Clone(lot.free)
	portions = b.subtract(lot.free, portions)
	lot.named |= b.named(portions)
	b.mark(lot, portions)
	for _, p := range portions {
		b.left[p.Item] -= p.Count * count
	}
	if l.tracing {
		l.trace(b, lot, portions)
	}
	switch {
	case lot.planned:
		l.record(b, lot.shape.Group, count, portions)
	case lot.phase == fleet.OnTheWay:
		for _, p := range portions {
			l.waits = append(l.waits, wait{b.items[p.Item], p.Count * count, lot.since})
		}
	}
}

// subtract takes portions off what is free and returns those that fitted.
func (b *batch) subtract(free vector.Vector, portions []packing.Portion) []packing.Portion {
	for i := 0; i < len(portions); i++ {
		p := portions[i]
		need := b.items[p.Item].Need
		if n := free.Times(need, p.Count); n < p.Count {
			portions = slices.Clone(portions)
			if portions[i].Count = n; n == 0 {
				portions = slices.Delete(portions, i, i+1)
				i--
				continue
			}
		}
		free.Subtract(need, portions[i].Count)
	}
	return portions
}

// mark books the bundles of strictly spread gangs on a node.
func (b *batch) mark(lot *lot, portions []packing.Portion) {
	if b.apart == 0 {
		return
	}
	if lot.gang != b.turn {
		lot.gang, lot.taken = b.turn, 0
	}
	for _, p := range portions {
		lot.taken += p.Count
	}
}

func (l *ledger) record(b *batch, group int, nodes int64, portions []packing.Portion) {
	for _, p := range portions {
		l.log = append(l.log, entry{group, b.purpose, b.items[p.Item], p.Count * nodes})
	}
}
