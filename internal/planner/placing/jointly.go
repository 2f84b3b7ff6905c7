package placing

import (
	"heliostat.dev/heliostat/internal/planner/packing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Limits of joint answers. Beyond them, only the greedy strategies answer: a program grows with the square of its rows,
// and demand with that many shapes fills its nodes well anyway.
const (
	MaxProgramItems = 60
	MaxProgramBins  = 120
	maxFitBins      = 40
	// MaxPlanSteps limits the work of all programs of a plan together.
	MaxPlanSteps = 1_500_000
)

// joinable reports whether one program can answer a batch: only counts connect its bundles.
func (b *Batch) joinable() bool {
	return b.apart == 0 && b.avoid == 0 && b.join == 0 && waiting(b.Left) <= MaxProgramItems
}

func waiting(left []int64) (kinds int) {
	for _, n := range left {
		if n > 0 {
			kinds++
		}
	}
	return kinds
}

func (b *Batch) part() packing.Demand {
	var w packing.Demand
	for i, n := range b.Left {
		if n > 0 {
			w.Items, w.Left, w.At = append(w.Items, b.items[i]), append(w.Left, n), append(w.At, i)
		}
	}
	return w
}

// inBatch converts portions to the indexes of the batch and leaves out what is no longer waiting.
func inBatch(w *packing.Demand, uses []packing.Portion, b *Batch, hosts int64) []packing.Portion {
	var portions []packing.Portion
	for _, u := range uses {
		if n := min(u.Count, b.Left[w.At[u.Item]]/hosts); n > 0 {
			portions = append(portions, packing.Portion{Item: w.At[u.Item], Count: n})
		}
	}
	return portions
}

// launchJointly launches the answer of the covering program over all open groups.
func (p *Placer) launchJointly(l *Ledger, b *Batch) {
	if !b.joinable() || b.Served() || p.Steps > MaxPlanSteps {
		return
	}
	w := b.part()
	groups, bins := p.OpenBins(l, b, &w)
	if len(bins) == 0 || len(bins) > MaxProgramBins {
		return
	}
	found, steps := packing.Cover(&w, bins, l.Spare)
	p.Steps += steps
	for _, f := range found.Fillings {
		g := &p.Groups[groups[f.Bin]]
		n := min(f.Count, min(l.Room[g.Shape.Group], l.Spare)/g.Hosts)
		if n <= 0 {
			continue // launches of another group have filled a pool that both groups use
		}
		portions := inBatch(&w, f.Uses, b, g.Hosts*n)
		if len(portions) == 0 {
			continue
		}
		l.Classes = append(l.Classes, l.Launch(g, n*g.Hosts)...)
		l.take(len(l.Classes)-1, b, n*g.Hosts, portions)
	}
}

// OpenBins lists the groups that may launch as bins, with the items that each may be launched for. It leaves out groups
// whose hosts differ.
func (p *Placer) OpenBins(l *Ledger, b *Batch, w *packing.Demand) (groups []int, bins []packing.Bin) {
	for i := range p.Groups {
		g := &p.Groups[i]
		if replicas := min(l.Room[i], l.Spare) / g.Hosts; replicas > 0 && g.Others == nil && b.admitsLabels(g.Shape.Labels) {
			groups = append(groups, i)
			bins = append(bins, packing.Bin{
				Free: g.Shape.Total, Cost: p.Costs.PerReplica[i], Hosts: g.Hosts, Limit: replicas,
				Accelerators: int64(p.Accelerators(g.Shape.Total)) * g.Hosts,
			})
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

// suitability rates how well a group serves an item, smaller is better: first by whether a node is known that could
// hold its pods, then by the item's preference, then by whether an accelerator would stay unused, then by the group's
// tier.
type suitability struct {
	trying, rank, tied, class int
}

// admit decides which groups are launched for an item: those with the best suitability. Other groups that match its
// first matching selector may carry it if they are launched for something else.
func (p *Placer) admit(groups []int, bins []packing.Bin, at int, it *vector.Item) {
	best := suitability{trying: 1, rank: len(it.Request.Selectors) + 1}
	stands := make([]suitability, len(groups))
	for k, i := range groups {
		g := &p.Groups[i]
		stands[k] = suitability{rank: vector.NoMatch}
		if !it.Suits(g.Shape) {
			continue
		}
		stands[k] = suitability{rank: it.Rank[g.Shape.Labels], class: p.Costs.Tier[i]}
		if g.Trying() {
			stands[k].trying = 1
		}
		if g.Shape.Accelerated && !it.Accelerator {
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
		case s.rank == best.rank && s.trying <= best.trying:
			bins[k].Admits[at] = packing.Secondary
		}
	}
}

func (c suitability) before(other suitability) bool {
	switch {
	case c.trying != other.trying:
		return c.trying < other.trying
	case c.rank != other.rank:
		return c.rank < other.rank
	case c.tied != other.tied:
		return c.tied < other.tied
	}
	return c.class < other.class
}
