package planner

import (
	"heliostat.dev/heliostat/internal/planner/packing"
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

func (b *batch) part() packing.Demand {
	var w packing.Demand
	for i, n := range b.left {
		if n > 0 {
			w.Items, w.Left, w.At = append(w.Items, b.items[i]), append(w.Left, n), append(w.At, i)
		}
	}
	return w
}

// inBatch numbers portions by their place in the batch, and leaves out what no longer waits.
func inBatch(w *packing.Demand, uses []packing.Portion, b *batch, hosts int64) []packing.Portion {
	var portions []packing.Portion
	for _, u := range uses {
		if n := min(u.Count, b.left[w.At[u.Item]]/hosts); n > 0 {
			portions = append(portions, packing.Portion{Item: w.At[u.Item], Count: n})
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
	found, steps := packing.Cover(&w, bins, l.spare)
	p.steps += steps
	for _, f := range found.Fillings {
		g := &p.Groups[groups[f.Bin]]
		n := min(f.Count, min(l.room[g.Shape.Group], l.spare)/g.Hosts)
		if n <= 0 {
			continue // launches of another group have filled a pool of nodes that both can land on
		}
		portions := inBatch(&w, f.Uses, b, g.Hosts*n)
		if len(portions) == 0 {
			continue
		}
		lot := l.launch(g, n*g.Hosts)
		l.lots = append(l.lots, lot)
		l.take(len(l.lots)-1, b, lot.count, portions)
	}
}

// openBins lists the groups that may launch, as bins, with what each may be launched for.
func (p *Placer) openBins(l *ledger, b *batch, w *packing.Demand) (groups []int, bins []packing.Bin) {
	for i := range p.Groups {
		g := &p.Groups[i]
		if replicas := min(l.room[i], l.spare) / g.Hosts; replicas > 0 && b.admitsLabels(g.Shape.Labels) {
			groups = append(groups, i)
			bins = append(bins, packing.Bin{Free: g.Shape.Total, Cost: p.yard.PerReplica[i], Hosts: g.Hosts, Limit: replicas,
				Accelerators: int64(p.Accelerators(g.Shape.Total)) * g.Hosts})
		}
	}
	for i := range bins {
		bins[i].Admits = make([]packing.Admission, len(w.Items))
	}
	for at, it := range w.Items {
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
func (p *Placer) admit(groups []int, bins []packing.Bin, at int, it *vector.Item) {
	best := claimOn{rank: len(it.Request.Selectors) + 1}
	stands := make([]claimOn, len(groups))
	for k, i := range groups {
		g := &p.Groups[i]
		stands[k] = claimOn{rank: vector.NoMatch}
		if !it.Suits(g.Shape) {
			continue
		}
		stands[k] = claimOn{rank: it.Rank[g.Shape.Labels], class: p.yard.Tier[i]}
		if g.Shape.Accelerated && !it.Accelerator && !p.policy.GPUForCPU {
			stands[k].tied = 1
		}
		if stands[k].before(best) {
			best = stands[k]
		}
	}
	for k, s := range stands {
		switch {
		case s == best && s.rank != vector.NoMatch:
			bins[k].Admits[at] = packing.Primary
		case s.rank == best.rank:
			bins[k].Admits[at] = packing.Secondary
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
