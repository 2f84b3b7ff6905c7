package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/packing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayOrder numbers items in the order in which Ray places them (ray scheduler.py, _sort_resource_request).
func rayOrder(items []*vector.Item) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := items[x], items[y]
		return cmp.Or(
			cmp.Compare(b.Constraints, a.Constraints),
			cmp.Compare(len(b.Need), len(a.Need)),
			cmp.Compare(b.PlainSum(), a.PlainSum()),
		)
	})
	return order
}

// gangsAsRay orders gangs as Ray does: those with most placement constraints first, then those with most bundles.
func gangsAsRay(gangs []*fleet.Gang) []*fleet.Gang {
	order := slices.Clone(gangs)
	slices.SortStableFunc(order, func(a, b *fleet.Gang) int {
		return cmp.Or(cmp.Compare(boundBundles(b), boundBundles(a)), cmp.Compare(len(b.Bundles), len(a.Bundles)))
	})
	return order
}

// constraints counts bundles that may not be placed without regard to the others.
func boundBundles(g *fleet.Gang) int {
	if g.Strict() {
		return len(g.Bundles)
	}
	return 0
}

// placeAsRay serves a batch in Ray's way: on the nodes there are, then on new ones.
func (p *Placer) placeAsRay(l *ledger, b *batch) {
	p.useFullest(l, b, false)
	if l.stepwise {
		p.useFullest(l, b, true)
	}
	p.launchBest(l, b)
}

// stock is what a pattern depends on.
type stock struct {
	shape *vector.Shape
	named nameSet
	free  *raydemand.Amount
}

// useFullest fills the node that is filled best, whether it has joined or not, again and again.
func (p *Placer) useFullest(l *ledger, b *batch, hidden bool) {
	kept := map[stock]*pattern{}
	for !b.served() {
		at, pat := p.fullestLot(l, b, kept, hidden)
		if at < 0 {
			return
		}
		l.take(at, b, pat.times(b, l.lots[at].count), pat.uses)
	}
}

func (p *Placer) fullestLot(l *ledger, b *batch, kept map[stock]*pattern, hidden bool) (int, *pattern) {
	best, at := (*pattern)(nil), -1
	for i := range l.lots {
		lot := &l.lots[i]
		if len(lot.free) == 0 || lot.hidden != hidden || !b.admits(lot) {
			continue
		}
		key := stock{lot.shape, lot.named, &lot.free[0]}
		pat := kept[key]
		if pat == nil || !pat.holds(b) {
			made, _ := p.newPattern(b, lot.shape, lot.free, 1, b.quota(lot))
			p.credit(&made, b, lot)
			if l.how == roomiest && b.turn > 0 {
				made.score.room = p.Holding(lot.free)
			}
			pat = &made
			kept[key] = pat
		}
		if len(pat.uses) > 0 && (at < 0 || l.how.prefers(pat, lot.shape.Group, best, l.lots[at].shape.Group)) {
			best, at = pat, i
		}
	}
	return at, best
}

// nameSet is a set of resources by their number in the catalog; those from 64 on are left out.
type nameSet uint64

func (b *batch) named(uses []packing.Portion) (names nameSet) {
	for _, u := range uses {
		for _, t := range b.items[u.Item].Need {
			names |= 1 << t.Resource
		}
	}
	return names
}

// credit counts in the score what this plan has placed on the node before, as Ray does.
func (p *Placer) credit(pat *pattern, b *batch, lot *lot) {
	pat.score.kinds = 0
	names := lot.named | b.named(pat.uses)
	for i, amount := range p.Named(lot.shape.Total) {
		if amount > 0 && names&(1<<i) != 0 {
			pat.score.kinds++
			pat.score.sparing = pat.score.sparing || raydemand.IsUnitInstance(p.Names[i])
		}
	}
}
