package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// A plan keeps to the work that its policy allows in these ways:
//
//   - What reading and reporting the demand takes is known before and taken off first. A quarter of the work is left
//     for planning in any case, so a plan keeps to its work or to about twice what that takes.
//   - Several kinds of very much demand share the plan (Fleet.Divide).
//   - It takes on as many shapes as usually take no more, and joins very similar ones. The next plans continue with the
//     others (fleet/turn.go).
//   - Once it has used half of what it may, it tries no further ways to improve the launches that it has found.
//   - If it has no launches within what it may use, it starts again on the next level: with a quarter of the shapes and
//     kinds of gangs. If little is left beside reading everything again, the next level is the last one.
//   - On the last level, or if the next one would have as many shapes and gangs, it finishes whatever that takes.
//
// Work is counted in looks, so equal snapshots and policies have equal plans.

// lastLevel is the level with the least demand.
const lastLevel = 3

// Reading a bundle of a snapshot or a node takes about as long as this many looks, and reporting what becomes of it as
// many as that. These figures, like those of Fleet.Limit, are measured by BenchmarkKinds.
const (
	looksToRead   = 150
	looksToReport = 100
)

// beside is the work of a plan beside planning.
type beside struct{ read, report int64 }

func besideOf(s *model.Snapshot) beside {
	bundles := 0
	for _, requests := range s.RequestLists() {
		bundles += len(requests)
	}
	for i := range s.Gangs {
		bundles += len(s.Gangs[i].Bundles)
		for _, other := range s.Gangs[i].Fallbacks {
			bundles += len(other)
		}
	}
	all := int64(bundles) + int64(len(s.Nodes))
	return beside{looksToRead * all, looksToReport * all}
}

// budgetOf returns how much of its policy's work a plan on the first level has for planning, after so many readings. 0
// means no limit.
func (b beside) budgetOf(work, readings int64) int64 {
	if work <= 0 {
		return 0
	}
	return max(work-readings*b.read-b.report, work/4)
}

// onLevel returns which part of a budget is for a level: a quarter for each.
func onLevel(budget int64, level int) int64 {
	if budget == 0 {
		return 0
	}
	return max(budget>>(2*level), 1)
}

// after returns the level on which a plan starts again after a level.
func (b beside) after(level int, left int64) int {
	const leastReadings = 4
	if left-b.report < leastReadings*b.read {
		return lastLevel
	}
	return level + 1
}

// allowance returns after how much work the planning on this level ends unfinished: three quarters of its budget. 0
// means no limit.
func (p *Search) allowance(level int) int64 {
	if p.budget == 0 || level == lastLevel || !p.mayTakeLess(level+1) {
		return 0
	}
	return max(p.budget/4*3, 1)
}

// mayTakeLess reports whether a level takes on less demand than this plan.
func (p *Search) mayTakeLess(level int) bool {
	call := p.MostOfCall(level)
	return len(p.Requests) > p.MaxShapesAt(level) || p.distinctGangs > p.MaxGangsAt(level) ||
		call < p.MostOfCall(p.level) && slices.ContainsFunc(p.Claims, func(c Claim) bool { return len(c.Items) > call })
}

// tired reports whether the plan has used so much work that it tries nothing more that is not necessary.
func (p *Search) tired() bool { return p.budget > 0 && p.Looks > p.budget/2 }

// Deferred returns the demand that is too much for this plan; nil if there is none.
func (p *Search) Deferred() *model.Deferred {
	var all model.Deferred
	var positions []string
	for _, it := range p.deferredShapes() {
		all.Shapes, positions = all.Shapes+1, append(positions, it.Position)
	}
	for _, g := range p.Gangs {
		if g.Deferred {
			all.Gangs, positions = all.Gangs+1, append(positions, g.Position)
		}
	}
	if len(positions) == 0 {
		return nil
	}
	all.Next = p.Next(positions)
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
	known := map[*vector.Shape]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Shape == nil || p.PhaseOf(n) != fleet.Overdue || out.Used[i] {
			continue
		}
		needed, asked := known[n.Shape]
		if !asked {
			needed = len(items) > mostChecked || vector.SuitsAny(items, n.Shape)
			known[n.Shape] = needed
		}
		if needed {
			if out.Spared == nil {
				out.Spared = make([]bool, len(p.Nodes))
			}
			out.Used[i], out.Spared[i] = true, true
		}
	}
}

// deferredShapes lists the shapes of requests and claims that are too many for this plan. What claims keep nodes for is
// not divided among the members of classes (refine).
func (p *Search) deferredShapes() (all []*vector.Item) {
	add := func(items []*vector.Item) {
		for _, it := range items {
			switch {
			case it.Deferred && it.Members != nil:
				all = append(all, it.Members...)
			case it.Deferred:
				all = append(all, it)
			}
		}
	}
	add(p.Requests)
	for _, c := range p.Claims {
		add(c.Items)
		add(c.keeps)
	}
	return all
}

// DeferredItems lists what is too much for this plan.
func (p *Search) DeferredItems() (all []*vector.Item) {
	all = p.deferredShapes()
	for _, g := range p.Gangs {
		if g.Deferred {
			all = append(all, g.Items()...)
		}
	}
	return all
}
