package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayOrder returns the indexes of items in Ray's order of placement (ray scheduler.py, _sort_resource_request).
func rayOrder(items []*Item) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := items[x], items[y]
		return cmp.Or(
			cmp.Compare(b.constraints, a.constraints),
			cmp.Compare(len(b.Need), len(a.Need)),
			cmp.Compare(b.plainSum(), a.plainSum()),
		)
	})
	return order
}

// placeAsRay places a batch as Ray does: on existing nodes, then on new ones.
func (p *Search) placeAsRay(l *Ledger, b *Batch) {
	p.useFullest(l, b, false)
	if l.stepwise {
		p.useFullest(l, b, true)
	}
	p.launchBest(l, b)
}

// patternKey is what a pattern depends on.
type patternKey struct {
	shape *Shape
	named nameSet
	free  *raydemand.Amount
}

// useFullest repeatedly fills the node that can be filled best, joined or not.
func (p *Search) useFullest(l *Ledger, b *Batch, hidden bool) {
	kept := map[patternKey]*pattern{}
	for !b.served() {
		at, pat := p.fullestClass(l, b, kept, hidden)
		if at < 0 {
			return
		}
		l.take(at, b, pat.times(b, l.classes[at].count), pat.uses)
	}
}

func (p *Search) fullestClass(l *Ledger, b *Batch, kept map[patternKey]*pattern, hidden bool) (int, *pattern) {
	best, at := (*pattern)(nil), -1
	for i := range l.classes {
		class := &l.classes[i]
		if len(class.free) == 0 || class.hidden != hidden || !b.admits(class) {
			continue
		}
		key := patternKey{class.Shape, class.named, &class.free[0]}
		pat := kept[key]
		if pat == nil || !pat.holds(b) {
			made, _ := p.newPattern(b, class.Shape, class.free, nil, 1, b.quota(class))
			p.credit(&made, b, class)
			if l.how == roomiest && b.turn > 0 {
				made.score.room = p.holding(class.free)
			}
			pat = &made
			kept[key] = pat
		}
		if len(pat.uses) > 0 && (at < 0 || l.how.prefers(pat, class.Shape.group, best, l.classes[at].Shape.group)) {
			best, at = pat, i
		}
	}
	return at, best
}

// nameSet is a set of resources by number in the catalog; it leaves out numbers from 64.
type nameSet uint64

func (b *Batch) named(uses []portion) (names nameSet) {
	for _, u := range uses {
		for _, t := range b.items[u.item].Need {
			names |= 1 << t.Resource
		}
	}
	return names
}

// credit adds to the score what this plan has already placed on the node, as Ray does.
func (p *Search) credit(pat *pattern, b *Batch, class *NodeClass) {
	pat.score.kinds = 0
	names := class.named | b.named(pat.uses)
	for i, amount := range p.Named(class.Shape.Total) {
		if amount > 0 && names&(1<<i) != 0 {
			pat.score.kinds++
			pat.score.sparing = pat.score.sparing || raydemand.IsUnitInstance(p.Names[i])
		}
	}
}
