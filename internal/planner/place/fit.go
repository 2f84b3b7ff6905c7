package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
)

// Batch is demand that is placed together: the requests, one gang, or one call of request_resources.
type Batch struct {
	purpose string // for the log; empty for plain requests
	items   []*Item
	left    []int64 // waiting bundles of each item
	// apart is how many bundles one node may take, or 0 for as many as fit: strictly spread gangs may place one each.
	// turn distinguishes the gangs' own nodes from others.
	apart  int64
	turn   int
	within Domain
	// avoid and join name a gang whose former nodes are excluded, or the only ones allowed; 0 means none.
	avoid, join int
	// order is the order of items on a node; nil is their own order.
	order   []int
	memory  bool // some bundle asks for memory, so unused memory counts as waste
	scratch []int64
}

func (p *Search) newBatch(purpose string, items []*Item, how Strategy) *Batch {
	b := &Batch{purpose: purpose, items: items, left: make([]int64, len(items))}
	if how.raysOrder() {
		b.order = rayOrder(items)
	}
	for i, it := range items {
		if !it.Trivial() {
			b.left[i] = it.Request.Count
		}
		for _, t := range it.Need {
			b.memory = b.memory || model.IsMemory(p.Names[t.Resource])
		}
	}
	return b
}

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

// putFirst places the items with these counts above 0 before the others.
func (b *Batch) putFirst(counts []int64) {
	order := make([]int, 0, len(b.items))
	for _, first := range []bool{true, false} {
		for k := range b.items {
			if i := b.at(k); counts[i] > 0 == first {
				order = append(order, i)
			}
		}
	}
	b.order = order
}

// at returns the index of the k-th item to place.
func (b *Batch) at(k int) int {
	if b.order == nil {
		return k
	}
	return b.order[k]
}

// served reports whether nothing is waiting.
func (b *Batch) served() bool {
	return !slices.ContainsFunc(b.left, func(n int64) bool { return n > 0 })
}

func (b *Batch) admits(l *NodeClass) bool {
	switch {
	case b.quota(l) == 0,
		b.avoid > 0 && slices.Contains(l.placed, b.avoid),
		b.join > 0 && !slices.Contains(l.placed, b.join):
		return false
	}
	return b.within.Admits(l.Shape.Labels)
}

// quota returns how many more bundles one node of a node class may take, regardless of its resources.
func (b *Batch) quota(l *NodeClass) int64 {
	switch {
	case b.apart == 0:
		return MaxCount
	case l.gang == b.turn:
		return b.apart - l.taken
	}
	return b.apart
}

// place places a batch: on nodes that run or already take demand, then on those on their way, then on new ones.
func (p *Search) place(l *Ledger, b *Batch) {
	if len(b.items) > p.MostShapes {
		p.fillExisting(l, b)
		p.launchBest(l, b)
		return
	}
	if !l.how.raysOrder() {
		l.useExisting(b)
	}
	p.useBest(l, b, false)
	if l.stepwise {
		p.useBest(l, b, true)
	}
	p.launchBest(l, b)
}

// fillExisting places a batch on existing nodes and nodes on their way, one node after the other. If there are very
// many items, that takes far less work than one item after the other.
func (p *Search) fillExisting(l *Ledger, b *Batch) {
	for at := 0; at < len(l.classes) && !b.served(); at++ {
		class := &l.classes[at]
		take, _ := b.fill(class.free, class.Shape.Labels, b.left, MaxCount)
		if len(take) == 0 {
			continue
		}
		nodes := class.count
		for _, t := range take {
			nodes = min(nodes, b.left[t.item]/t.count)
		}
		l.take(at, b, nodes, take)
	}
}

// useExisting places item by item, largest first, on the first nodes that fit (first-fit decreasing). It tries
// selectors in order. Work without accelerators uses accelerator nodes last.
func (l *Ledger) useExisting(b *Batch) {
	for k := range b.items {
		i := b.at(k)
		it := b.items[i]
		for choice := 0; choice < it.Alternatives && b.left[i] > 0; choice++ {
			if it.accelerator {
				l.useClasses(b, i, choice, func(*NodeClass) bool { return true })
				continue
			}
			l.useClasses(b, i, choice, func(class *NodeClass) bool { return !class.Shape.Accelerated })
			l.useClasses(b, i, choice, func(class *NodeClass) bool { return class.Shape.Accelerated })
		}
	}
}

func (l *Ledger) useClasses(b *Batch, i, choice int, wanted func(*NodeClass) bool) {
	it := b.items[i]
	for at := 0; at < len(l.classes) && b.left[i] > 0; at++ {
		class := &l.classes[at]
		if class.hidden || class.phase == OnTheWay && !class.touched || class.free.lacks(it.Need) {
			continue
		}
		if it.Rank[class.Shape.Labels] == choice && wanted(class) && b.admits(class) {
			at += l.useClass(at, b, i)
		}
	}
}

// useClass fills as many nodes of a node class as the item needs, the last one perhaps partly. It returns how many node
// classes it split off in front of the rest.
func (l *Ledger) useClass(at int, b *Batch, i int) int {
	each := l.classes[at].free.Times(b.items[i].Need, min(b.left[i], b.quota(&l.classes[at])))
	if each == 0 {
		return 0
	}
	count, start := l.classes[at].count, at
	full := min(count, b.left[i]/each)
	if full > 0 {
		l.take(at, b, full, []portion{{item: i, count: each}})
		at++
	}
	if rest := b.left[i]; full < count && rest > 0 {
		l.take(at, b, 1, []portion{{item: i, count: rest}})
		at++
	}
	return max(at-start-1, 0)
}

// take places the portions on each of count nodes of a node class, one portion after the other.
func (l *Ledger) take(at int, b *Batch, count int64, portions []portion) {
	at = l.split(at, count)
	class := &l.classes[at]
	unused := !class.touched
	class.touched, class.hidden = true, false
	class.free = slices.Clone(class.free)
	class.named |= b.named(portions)
	b.mark(class, portions)
	for _, p := range portions {
		class.free.subtract(b.items[p.item].Need, p.count)
		b.left[p.item] -= p.count * count
	}
	l.note(b, class, portions, unused, false)
}

// mark records the bundles of strictly spread gangs on a node.
func (b *Batch) mark(class *NodeClass, portions []portion) {
	if b.apart == 0 {
		return
	}
	if class.gang != b.turn {
		class.gang, class.taken = b.turn, 0
	}
	for _, p := range portions {
		class.taken += p.count
	}
}
