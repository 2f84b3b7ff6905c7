package place

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
)

// A plan keeps to the work that its policy allows in these ways:
//
//   - What reading and reporting the demand takes is known before and taken off first. A quarter of the work is left
//     for planning in any case, so a plan keeps to its work or to about twice what that takes.
//   - It takes on as many different shapes as usually take no more. The next plans continue with the others
//     (turn.go).
//   - Once it has used half of what it may, it tries no further ways to improve the launches that it has found.
//
// Work is counted in looks, so equal snapshots and policies have equal plans.

// looksBeside is how many looks take about as long as reading a bundle of a snapshot or a node, and reporting what
// becomes of it. Like the figures of Fleet.limit, it is measured by BenchmarkKinds.
const looksBeside = 250

// besidePlanning is the work of a plan beside planning.
func besidePlanning(s *model.Snapshot) int64 {
	bundles := len(s.Nodes)
	for _, requests := range s.RequestLists() {
		bundles += len(requests)
	}
	for i := range s.Gangs {
		bundles += len(s.Gangs[i].Bundles)
		for _, other := range s.Gangs[i].Fallbacks {
			bundles += len(other)
		}
	}
	return looksBeside * int64(bundles)
}

// budgetOf returns how much of its policy's work a plan has for planning. 0 means no limit.
func budgetOf(work, beside int64) int64 { return max(work-beside, work/4, 0) }

// tired reports whether the plan has used so much work that it tries nothing more that is not necessary.
func (p *Search) tired() bool { return p.budget > 0 && p.Looks > p.budget/2 }

// deferMany leaves the demand that is too much for one plan to the next ones. Demand that nothing suits needs no turn.
func (p *Search) deferMany(within []*Item) {
	var shapes []*Item
	for _, it := range slices.Concat(within, p.kinds, p.Requests) {
		if p.Certain(it) {
			shapes = append(shapes, it)
		}
	}
	p.DeferMany(shapes, p.placeable)
	p.placeable = slices.DeleteFunc(p.placeable, func(g *Gang) bool { return g.Deferred })
}

// parted separates what is planned now from what is set aside.
func parted(items []*Item) (now, aside []*Item) {
	for _, it := range items {
		if it.aside {
			aside = append(aside, it)
		} else {
			now = append(now, it)
		}
	}
	return now, aside
}

// hold places items that are set aside on what exists, and returns what that leaves. Items that have room there are not
// deferred.
func (p *Search) hold(aside []*Item, classes []NodeClass) []NodeClass {
	if len(aside) == 0 {
		return classes
	}
	l := p.open(classes, make([]int64, len(p.Groups)))
	b := p.newBatch("", aside, fullest)
	p.fillExisting(l, b)
	for i, it := range aside {
		it.Deferred = b.left[i] > 0
	}
	for _, w := range l.log {
		if !w.Item.Deferred {
			p.waits = append(p.waits, w)
		}
	}
	return l.classes
}

// addUnplanned adds the demand that the rounds did not place: shapes that are set aside, deferred gangs, and gangs
// without a place.
func (p *Search) addUnplanned(out *Outcome) {
	for _, g := range p.Gangs {
		if g.unplaceable || g.Deferred {
			out.Gangs = append(out.Gangs, g)
		}
	}
	slices.SortFunc(out.Gangs, func(a, b *Gang) int { return a.Number - b.Number })
	out.Log = append(out.Log, p.waits...)
	p.Requests, out.Unserved = withAside(p.Requests, p.aside, out.Unserved)
	for i := range p.Claims {
		c := &p.Claims[i]
		at := slices.Index(out.Claims, i)
		if at < 0 && !slices.ContainsFunc(c.aside, func(it *Item) bool { return it.Deferred }) {
			c.Items = append(c.Items, c.aside...)
			slices.SortFunc(c.Items, largestFirst)
			continue
		}
		if at < 0 {
			at = len(out.Claims)
			out.Claims, out.claimed = append(out.Claims, i), append(out.claimed, make([]int64, len(c.Items)))
		}
		c.Items, out.claimed[at] = withAside(c.Items, c.aside, out.claimed[at])
	}
}

// withAside returns items with those that are set aside, and the unserved bundles of each.
func withAside(items, aside []*Item, unserved []int64) ([]*Item, []int64) {
	if len(aside) == 0 {
		return items, unserved
	}
	left := make(map[*Item]int64, len(items)+len(aside))
	for i, it := range items {
		left[it] = unserved[i]
	}
	for _, it := range aside {
		if it.Deferred {
			left[it] = it.Request.Count
		}
	}
	all := slices.Concat(items, aside)
	slices.SortFunc(all, largestFirst)
	unserved = make([]int64, len(all))
	for i, it := range all {
		unserved[i] = left[it]
	}
	return all, unserved
}

// Deferred returns the demand that is too much for this plan; nil if there is none.
func (p *Search) Deferred() *model.Deferred {
	var all model.Deferred
	var positions []string
	for _, it := range p.deferredShapes() {
		all.Shapes, positions = all.Shapes+1, append(positions, it.position)
	}
	for _, g := range p.Gangs {
		if g.Deferred {
			all.Gangs, positions = all.Gangs+1, append(positions, g.position)
		}
	}
	if len(positions) == 0 {
		return nil
	}
	all.Next = p.next(positions)
	return &all
}

// mostChecked is how many deferred items are compared with one kind of worker. If there are more, one of them could
// need it.
const mostChecked = 5000

// keepForDeferred keeps the idle workers that demand could use which is not planned now: it was not asked whether it
// needs them.
func (p *Search) keepForDeferred(out *Outcome) {
	items := p.DeferredItems()
	if len(items) == 0 {
		return
	}
	known := map[*Shape]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		// What a minimum keeps now, it may not keep beside this plan's launches.
		if n.Shape == nil || !p.overdue(n) || out.Used[i] {
			continue
		}
		needed, asked := known[n.Shape]
		if !asked {
			needed = len(items) > mostChecked || SuitsAny(items, n.Shape)
			known[n.Shape] = needed
		}
		if needed {
			if out.spared == nil {
				out.spared = make([]bool, len(p.Nodes))
			}
			out.Used[i], out.spared[i] = true, true
		}
	}
}

// deferredShapes lists the shapes of requests and claims that are too many for this plan.
func (p *Search) deferredShapes() []*Item {
	all := slices.Clone(p.aside)
	for _, c := range p.Claims {
		all = append(all, c.aside...)
	}
	return slices.DeleteFunc(all, func(it *Item) bool { return !it.Deferred })
}

// DeferredItems lists what is too much for this plan.
func (p *Search) DeferredItems() []*Item {
	all := p.deferredShapes()
	for _, g := range p.Gangs {
		if g.Deferred {
			all = append(all, g.Items()...)
		}
	}
	return all
}
