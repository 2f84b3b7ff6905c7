package placing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Batch is demand that is placed together: the requests, one gang, or one call of request_resources.
type Batch struct {
	purpose string // for the log; empty for plain requests
	items   []*vector.Item
	Left    []int64 // waiting bundles of each item
	// apart is how many bundles one node may take, or 0 for as many as fit: strictly spread gangs may place one each.
	// turn distinguishes the gangs' own nodes from others.
	apart  int64
	turn   int
	within fleet.Domain
	// avoid and join name a gang whose former nodes are excluded, or the only ones allowed; 0 means none.
	avoid, join int
	// order is the order of items on a node; nil is their own order.
	order   []int
	memory  bool // some bundle asks for memory, so unused memory counts as waste
	scratch []int64
	// names is the number of resource names. index finds items that fit; nil until fill needs it. Left may only shrink
	// while it exists.
	names int
	index *fitIndex
	Looks int64
}

func (p *Placer) NewBatch(purpose string, items []*vector.Item, how Strategy) *Batch {
	b := &Batch{purpose: purpose, items: items, Left: make([]int64, len(items)), names: len(p.Names)}
	if how.RaysOrder() {
		b.order = rayOrder(items)
	}
	for i, it := range items {
		if !it.Trivial() {
			b.Left[i] = it.Request.Count
		}
		for _, t := range it.Need {
			b.memory = b.memory || phrase.IsMemory(p.Names[t.Resource])
		}
	}
	return b
}

// PutFirst places the items with these counts above 0 before the others.
func (b *Batch) PutFirst(counts []int64) {
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

// Served reports whether nothing is waiting.
func (b *Batch) Served() bool {
	return !slices.ContainsFunc(b.Left, func(n int64) bool { return n > 0 })
}

func (b *Batch) admits(l *NodeClass) bool {
	switch {
	case b.quota(l) == 0,
		b.avoid > 0 && slices.Contains(l.placed, b.avoid),
		b.join > 0 && !slices.Contains(l.placed, b.join):
		return false
	}
	return b.admitsLabels(l.Shape.Labels)
}

func (b *Batch) admitsLabels(set int) bool { return b.within.Admits(set) }

// quota returns how many more bundles one node of a node class may take, regardless of its resources.
func (b *Batch) quota(l *NodeClass) int64 {
	switch {
	case b.apart == 0:
		return vector.MaxCount
	case l.gang == b.turn:
		return b.apart - l.taken
	}
	return b.apart
}

// Place places a batch: on nodes that run or already take demand, then on those on their way, then on new ones. Before
// it launches new ones, it tries the existing nodes once more for all of the batch together.
func (p *Placer) Place(l *Ledger, b *Batch) {
	p.BreakOff()
	defer p.count(b)
	if len(b.items) > p.MostShapes {
		p.FillExisting(l, b)
		p.launchBest(l, b)
		return
	}
	if l.How.RaysOrder() {
		p.placeAsRay(l, b)
		return
	}
	retry := p.retryable(l, b)
	var before *Ledger
	left := slices.Clone(b.Left)
	if retry {
		before = p.Trial(l)
	}
	l.UseExisting(b)
	p.useOnTheWay(l, b, false)
	if l.Stepwise {
		p.useOnTheWay(l, b, true)
	}
	if retry && !b.Served() {
		greedy := b.Left
		b.Left, b.index = left, nil
		if p.fitJointly(before, b, greedy) {
			*l, *before = *before, *l
		} else {
			b.Left, b.index = greedy, nil
		}
	}
	p.Release(before)
	p.launchBest(l, b)
}

// count adds the looks of a batch to those of the plan.
func (p *Placer) count(b *Batch) { p.Looks, b.Looks = p.Looks+b.Looks, 0 }

// FillExisting places a batch on existing nodes and nodes on their way, one node after the other. If there are very
// many items, that takes far less work than one item after the other.
func (p *Placer) FillExisting(l *Ledger, b *Batch) {
	defer p.count(b)
	for at := 0; at < len(l.Classes) && !b.Served(); at++ {
		p.BreakOff()
		class := &l.Classes[at]
		take, _ := b.fill(class.Free, class.Shape.Labels, b.Left, vector.MaxCount)
		if len(take) == 0 {
			continue
		}
		nodes := class.Count
		for _, t := range take {
			nodes = min(nodes, b.Left[t.Item]/t.Count)
		}
		l.take(at, b, nodes, take)
	}
}

// UseExisting places item by item, largest first, on the first nodes that fit (first-fit decreasing). It tries
// selectors in order. Work without accelerators uses accelerator nodes last. But before a request prevents a node from
// being stopped, it uses a node that has work anyway. This is for requests only: demand after a gang may need the
// accelerators.
func (l *Ledger) UseExisting(b *Batch) {
	ride := b.purpose == "" && l.anyOverdue()
	for k := range b.items {
		i := b.at(k)
		it := b.items[i]
		for choice := 0; choice < it.Alternatives && b.Left[i] > 0; choice++ {
			if it.Accelerator {
				l.useClasses(b, i, choice, func(*NodeClass) bool { return true })
				continue
			}
			if ride {
				l.useClasses(b, i, choice, func(class *NodeClass) bool {
					return !class.Shape.Accelerated && class.stays()
				})
				l.useClasses(b, i, choice, func(class *NodeClass) bool {
					return class.Shape.Accelerated && (class.Phase == fleet.Running || class.Touched)
				})
			}
			l.useClasses(b, i, choice, func(class *NodeClass) bool { return !class.Shape.Accelerated })
			l.useClasses(b, i, choice, func(class *NodeClass) bool { return class.Shape.Accelerated })
		}
	}
}

// stays reports whether a node stays even if nothing is placed on it now.
func (l *NodeClass) stays() bool { return l.Phase < fleet.Overdue || l.Touched }

func (l *Ledger) anyOverdue() bool {
	for i := range l.Classes {
		if l.Classes[i].Phase == fleet.Overdue {
			return true
		}
	}
	return false
}

func (l *Ledger) useClasses(b *Batch, i, choice int, wanted func(*NodeClass) bool) {
	it := b.items[i]
	for at := 0; at < len(l.Classes) && b.Left[i] > 0; at++ {
		class := &l.Classes[at]
		b.Looks++
		if class.hidden || class.Phase == fleet.OnTheWay && !class.Touched || class.Free.Lacks(it.Need) {
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
	each := l.Classes[at].Free.Times(b.items[i].Need, min(b.Left[i], b.quota(&l.Classes[at])))
	if each == 0 {
		return 0
	}
	count, start := l.Classes[at].Count, at
	full := min(count, b.Left[i]/each)
	if full > 0 {
		l.take(at, b, full, []portion{{Item: i, Count: each}})
		at++
	}
	if rest := b.Left[i]; full < count && rest > 0 {
		l.take(at, b, 1, []portion{{Item: i, Count: rest}})
		at++
	}
	return max(at-start-1, 0)
}

// take places the portions on each of count nodes of a node class, one portion after the other. If parts of cards were
// found to fit in another order, some may not fit in this one; those keep waiting.
func (l *Ledger) take(at int, b *Batch, count int64, portions []portion) {
	at = l.split(at, count)
	class := &l.Classes[at]
	class.Touched, class.hidden = true, false
	class.Free = slices.Clone(class.Free)
	portions = b.subtract(class.Free, portions)
	class.named |= b.named(portions)
	b.mark(class, portions)
	for _, p := range portions {
		b.Left[p.Item] -= p.Count * count
	}
	if l.Tracing {
		l.trace(b, class, portions)
	}
	switch {
	case class.planned:
		l.record(b, class.Shape.Group, count, portions)
	case class.Phase == fleet.OnTheWay:
		for _, p := range portions {
			l.Waits = append(l.Waits, Wait{b.items[p.Item], p.Count * count, class.since})
		}
	}
}

// subtract takes portions off the free resources and returns those that fitted.
func (b *Batch) subtract(free vector.Vector, portions []portion) []portion {
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

// mark records the bundles of strictly spread gangs on a node.
func (b *Batch) mark(class *NodeClass, portions []portion) {
	if b.apart == 0 {
		return
	}
	if class.gang != b.turn {
		class.gang, class.taken = b.turn, 0
	}
	for _, p := range portions {
		class.taken += p.Count
	}
}

func (l *Ledger) record(b *Batch, group int, nodes int64, portions []portion) {
	for _, p := range portions {
		l.Log = append(l.Log, Entry{group, b.purpose, b.items[p.Item], p.Count * nodes})
	}
}
