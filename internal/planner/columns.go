package planner

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// Limits of what is answered jointly. Beyond them the greedy strategies answer alone: a program grows with the square
// of its rows, and demand of so many shapes fills its nodes well anyway.
const (
	maxProgramItems = 60
	maxProgramBins  = 120
	maxFitBins      = 40
	// maxPlanSteps bounds all programs of a plan together.
	maxPlanSteps = 1_500_000
)

// programDives is how many dives are made: more find almost nothing that two have missed.
const programDives = 2

// joinable reports whether a batch can be answered as one program: nothing in it but counts ties bundles together.
func (b *batch) joinable() bool {
	return b.apart == 0 && b.avoid == 0 && b.join == 0 && waiting(b.left) <= maxProgramItems
}

func waiting(left []int64) (kinds int) {
	for _, n := range left {
		if n > 0 {
			kinds++
		}
	}
	return kinds
}

// part is what of a batch waits: the items with their places in it.
type part struct {
	items []*vector.Item
	left  []int64
	at    []int
	// most is how many bundles of each item one node may take; nil is as many as fit.
	most []int64
}

func (b *batch) part() part {
	var w part
	for i, n := range b.left {
		if n > 0 {
			w.items, w.left, w.at = append(w.items, b.items[i]), append(w.left, n), append(w.at, i)
		}
	}
	return w
}

// inBatch numbers portions by their place in the batch, and leaves out what no longer waits.
func inBatch(w *part, uses []portion, b *batch, hosts int64) []portion {
	var portions []portion
	for _, u := range uses {
		if n := min(u.count, b.left[w.at[u.item]]/hosts); n > 0 {
			portions = append(portions, portion{w.at[u.item], n})
		}
	}
	return portions
}

// launchJointly launches what the covering program over all open groups finds.
func (p *Placer) launchJointly(l *ledger, b *batch) {
	if !b.joinable() || b.served() || p.steps > maxPlanSteps {
		return
	}
	w := b.part()
	groups, bins := p.openBins(l, b, &w)
	if len(bins) == 0 || len(bins) > maxProgramBins {
		return
	}
	found, steps := cover(&w, bins, l.spare)
	p.steps += steps
	for _, f := range found.fillings {
		g := &p.groups[groups[f.bin]]
		n := min(f.count, min(l.room[g.shape.Group], l.spare)/g.hosts)
		if n <= 0 {
			continue // launches of another group have filled a pool of nodes that both can land on
		}
		portions := inBatch(&w, f.uses, b, g.hosts*n)
		if len(portions) == 0 {
			continue
		}
		lot := l.launch(g, n*g.hosts)
		l.lots = append(l.lots, lot)
		l.take(len(l.lots)-1, b, lot.count, portions)
	}
}

// fitInto packs all that waits into bins, whatever they cost. It reports false where not even fractions of fillings would serve
// everything, and returns the steps of work that it took.
func fitInto(w *part, bins []bin) (found packing, possible bool, steps int) {
	c := newCovering(w, bins, budgets{math.MaxInt64, math.MaxInt64})
	found, possible = c.fit(programDives)
	return found, possible, c.steps
}

// lowerBoundOf is the value of the covering program, less than which no packing costs, with at most so many nodes for each knapsack. served
// is false where not even fractions of fillings serve everything; exact is false where some knapsack was cut short, so that the value is
// no bound. Tests judge plans by it.
func lowerBoundOf(w *part, bins []bin, nodes int) (value float64, served, exact bool) {
	c := newCovering(w, bins, budgets{math.MaxInt64, math.MaxInt64})
	c.nodes, c.work = nodes, math.MaxInt/2
	s := newSimplex(c, math.MaxInt)
	c.solve(s)
	return s.objective(), !s.leavesOver(), c.exact
}

// cover answers the program and returns the steps of work that it took. Where work that needs no accelerator could ride on nodes with some, those that need one
// are packed alone first: all together shall not launch more accelerators than they did.
func cover(w *part, bins []bin, spare int64) (packing, int) {
	steps := 0
	budget := budgets{podBudget: min(spare, vector.MaxCount), acceleratorBudget: math.MaxInt64}
	if alone, bins := w.onAccelerators(bins); len(alone.items) > 0 && len(alone.items) < len(w.items) {
		c := newCovering(&alone, bins, budget)
		var most int64
		for _, f := range c.best(programDives).fillings {
			most += f.count * bins[f.bin].accelerators
		}
		budget[acceleratorBudget] = most
		steps = c.steps
	}
	c := newCovering(w, bins, budget)
	found := c.best(programDives)
	return found, steps + c.steps
}

// onAccelerators picks the items for which nodes with accelerators are launched, if others could ride on those, and
// the bins as these items see them.
func (w *part) onAccelerators(bins []bin) (part, []bin) {
	var alone part
	rider := false
	needs := make([]bool, len(w.items))
	for i := range bins {
		for at, a := range bins[i].admits {
			needs[at] = needs[at] || a == native && bins[i].accelerators > 0
			rider = rider || a == rides && bins[i].accelerators > 0
		}
	}
	if !rider {
		return alone, bins
	}
	own := slices.Clone(bins)
	for i := range own {
		own[i].admits = nil
	}
	for at, needed := range needs {
		if needed {
			alone.items, alone.left, alone.at = append(alone.items, w.items[at]), append(alone.left, w.left[at]), append(alone.at, w.at[at])
			if w.most != nil {
				alone.most = append(alone.most, w.most[at])
			}
			for i := range own {
				own[i].admits = append(own[i].admits, bins[i].admits[at])
			}
		}
	}
	return alone, own
}

// openBins lists the groups that may launch, as bins, with what each may be launched for.
func (p *Placer) openBins(l *ledger, b *batch, w *part) (groups []int, bins []bin) {
	for i := range p.groups {
		g := &p.groups[i]
		if replicas := min(l.room[i], l.spare) / g.hosts; replicas > 0 && b.admitsLabels(g.shape.Labels) {
			groups = append(groups, i)
			bins = append(bins, bin{free: g.shape.Total, cost: p.yard.cost[i], hosts: g.hosts, limit: replicas,
				accelerators: int64(p.Accelerators(g.shape.Total)) * g.hosts})
		}
	}
	for i := range bins {
		bins[i].admits = make([]admission, len(w.items))
	}
	for at, it := range w.items {
		p.admit(groups, bins, at, it)
	}
	return groups, bins
}

// claimOn says how well a group stands for an item, smaller is better: first the item's own preference, then whether
// an accelerator would be tied up, then the group's class.
type claimOn struct {
	rank, tied, class int
}

// admit decides which groups are launched for an item: those that stand best for it. The others that its first
// matching selector allows may carry it when they are launched for something else.
func (p *Placer) admit(groups []int, bins []bin, at int, it *vector.Item) {
	best := claimOn{rank: len(it.Request.Selectors) + 1}
	stands := make([]claimOn, len(groups))
	for k, i := range groups {
		g := &p.groups[i]
		stands[k] = claimOn{rank: vector.NoMatch}
		if !it.Suits(g.shape) {
			continue
		}
		stands[k] = claimOn{rank: it.Rank[g.shape.Labels], class: p.yard.class[i]}
		if g.shape.Accelerated && !it.Accelerator && !p.policy.GPUForCPU {
			stands[k].tied = 1
		}
		if stands[k].before(best) {
			best = stands[k]
		}
	}
	for k, s := range stands {
		switch {
		case s == best && s.rank != vector.NoMatch:
			bins[k].admits[at] = native
		case s.rank == best.rank:
			bins[k].admits[at] = rides
		}
	}
}

func (c claimOn) before(other claimOn) bool {
	switch {
	case c.rank != other.rank:
		return c.rank < other.rank
	case c.tied != other.tied:
		return c.tied < other.tied
	}
	return c.class < other.class
}
