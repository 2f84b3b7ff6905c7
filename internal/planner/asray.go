package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Other orders are tried for demand that is small: many nodes of many kinds leave room for everything in any order, and each node
// that is filled may mean another look at all of them.
const (
	maxOrderedItems = 40
	maxOrderedLots  = 60
)

// bestRound is the better of two rounds: the one that uses what is there soonest, and the one in Ray's own order, where that could
// serve more or launch less. Both the search for launches and the judgement of them ask it, so whatever order serves,
// the next plan finds the same.
func (p *planning) bestRound(given []int64, how strategy) outcome {
	best := p.round(given, how)
	if best.perfect() || !p.orderMatters(&best) {
		return best
	}
	v := p.verdict(best.launched, &best)
	for _, o := range orders {
		other := p.roundIn(given, o)
		other.reordered = true
		if w := p.verdict(other.launched, &other); w.compare(&v) < 0 {
			if best, v = other, w; best.perfect() {
				break
			}
		}
	}
	return best
}

// perfect reports whether nothing is left to be desired: all is served, and nothing launched for it.
func (o *outcome) perfect() bool { return sum(o.launched) == 0 && o.served() }

// order is how a round looks for places.
type order struct {
	how strategy
	// stepwise: empty nodes, whether they have joined or are on their way, are used like new ones, each step taking only as
	// many as it needs. A plan that launched for one step after the other is found again that way.
	stepwise bool
}

// orders are tried beside the first where that leaves something to be desired.
var orders = []order{{asRay, false}, {fullest, true}, {thriftiest, true}, {asRay, true}, {roomiest, true}}

// orderMatters reports whether other orders can be tried and could be better. Requests alone that are all served are launched
// for by strategies, for which it is the price that counts.
func (p *planning) orderMatters(out *outcome) bool {
	if p.itemCount() > maxOrderedItems || out.lots+len(p.groups) > maxOrderedLots {
		return false
	}
	return len(p.claims)+len(p.gangs) > 0 || !out.served()
}

// served reports whether nothing waits.
func (o *outcome) served() bool {
	return sum(o.unserved) == 0 && len(o.gangs)+len(o.claims) == 0
}

// itemCount counts what is placed one by one.
func (p *planning) itemCount() int {
	items := len(p.requests)
	for _, c := range p.claims {
		items += len(c.items)
	}
	for _, g := range p.gangs {
		items += len(g.options[0].items)
	}
	return items
}

// rayOrder numbers items in the order in which Ray places them (ray scheduler.py, _sort_resource_request).
func rayOrder(items []*item) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := items[x], items[y]
		return cmp.Or(
			cmp.Compare(b.constraints, a.constraints),
			cmp.Compare(len(b.need), len(a.need)),
			cmp.Compare(b.plainSum(), a.plainSum()),
		)
	})
	return order
}

// plainSum adds amounts of all resources, bytes of memory among them, as Ray does.
func (it *item) plainSum() (sum float64) {
	for _, t := range it.need {
		sum += t.amount.Float()
	}
	return sum
}

// gangsAsRay orders gangs as Ray does: those with most placement constraints first, then those with most bundles.
func gangsAsRay(gangs []*gang) []*gang {
	order := slices.Clone(gangs)
	slices.SortStableFunc(order, func(a, b *gang) int {
		return cmp.Or(cmp.Compare(b.constraints(), a.constraints()), cmp.Compare(len(b.Bundles), len(a.Bundles)))
	})
	return order
}

// constraints counts bundles that may not be placed without regard to the others.
func (g *gang) constraints() int {
	if g.strict() {
		return len(g.Bundles)
	}
	return 0
}

// placeAsRay serves a batch in Ray's way: on the nodes there are, then on new ones.
func (p *planning) placeAsRay(l *ledger, b *batch) {
	p.useFullest(l, b, false)
	if l.stepwise {
		p.useFullest(l, b, true)
	}
	p.launchBest(l, b)
}

// stock is what a pattern depends on.
type stock struct {
	shape *shape
	named nameSet
	free  *raydemand.Amount
}

// useFullest fills the node that is filled best, whether it has joined or not, again and again.
func (p *planning) useFullest(l *ledger, b *batch, hidden bool) {
	kept := map[stock]*pattern{}
	for !b.served() {
		at, pat := p.fullestLot(l, b, kept, hidden)
		if at < 0 {
			return
		}
		l.take(at, b, pat.times(b, l.lots[at].count), pat.uses)
	}
}

func (p *planning) fullestLot(l *ledger, b *batch, kept map[stock]*pattern, hidden bool) (int, *pattern) {
	best, at := (*pattern)(nil), -1
	for i := range l.lots {
		lot := &l.lots[i]
		if len(lot.free) == 0 || lot.hidden != hidden || !b.admits(lot) {
			continue
		}
		key := stock{lot.shape, lot.named, &lot.free[0]}
		pat := kept[key]
		if pat == nil || !pat.holds(b) {
			made, _ := p.newPattern(b, lot.shape, lot.free, 1)
			p.credit(&made, b, lot)
			if l.how == roomiest && b.turn > 0 {
				made.score.room = p.holding(lot.free)
			}
			pat = &made
			kept[key] = pat
		}
		if len(pat.uses) > 0 && (at < 0 || l.how.prefers(pat, lot.shape.group, best, l.lots[at].shape.group)) {
			best, at = pat, i
		}
	}
	return at, best
}

// nameSet is a set of resources by their number in the catalog; those from 64 on are left out.
type nameSet uint64

func (b *batch) named(uses []portion) (names nameSet) {
	for _, u := range uses {
		for _, t := range b.items[u.item].need {
			names |= 1 << t.resource
		}
	}
	return names
}

// credit counts in the score what this plan has placed on the node before, as Ray does.
func (p *planning) credit(pat *pattern, b *batch, lot *lot) {
	pat.score.kinds = 0
	names := lot.named | b.named(pat.uses)
	for i, amount := range lot.shape.total {
		if amount > 0 && names&(1<<i) != 0 {
			pat.score.kinds++
			pat.score.sparing = pat.score.sparing || accelerators[p.names[i]]
		}
	}
}

// hide keeps empty nodes back until a step needs them.
func (l *ledger) hide() {
	l.stepwise = true
	for i := range l.lots {
		lot := &l.lots[i]
		lot.hidden = lot.phase != running && lot.shape.group != headGroup && !lot.touched && slices.Equal(lot.free, lot.shape.total)
	}
}

// hiddenOf counts the hidden nodes of each group.
func (l *ledger) hiddenOf(groups int) []int64 {
	counts := make([]int64, groups)
	for i := range l.lots {
		if lot := &l.lots[i]; lot.hidden {
			counts[lot.shape.group] += lot.count
		}
	}
	return counts
}

// reveal offers n more nodes of a group to all that is placed from now on.
func (l *ledger) reveal(group int, n int64) {
	for i := 0; i < len(l.lots) && n > 0; i++ {
		if !l.lots[i].hidden || l.lots[i].shape.group != group {
			continue
		}
		count := min(n, l.lots[i].count)
		l.lots[l.split(i, count)].hidden = false
		n -= count
	}
}

// revealMinimum offers what a minimum keeps in any case.
func (p *planning) revealMinimum(l *ledger) {
	short := make([]int64, len(p.groups))
	for i := range p.groups {
		short[i] = p.groups[i].min
	}
	for i := range l.lots {
		if lot := &l.lots[i]; lot.shape.group != headGroup && !lot.hidden {
			short[lot.shape.group] -= lot.count
		}
	}
	for i, n := range short {
		l.reveal(i, n)
	}
}

// holdsBack reports whether nodes of a group are hidden.
func (l *ledger) holdsBack(group int) bool {
	return l.stepwise && slices.ContainsFunc(l.lots, func(lot lot) bool { return lot.hidden && lot.shape.group == group })
}
