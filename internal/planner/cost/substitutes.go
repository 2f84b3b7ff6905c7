package cost

import (
	"iter"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// Substitutes are sets of groups that could serve the same work, directly or through another substitute. Prices count
// within a set if all of its groups have one. A group that no waiting demand needs is alone in its set.
type Substitutes struct {
	// Of is each group's set, identified by its first group.
	Of []int
	// priced reports, for the first group of a set, whether all groups of the set have a price.
	priced []bool
}

// newSubstitutes finds the groups that could be launched for the same work, if some have a price and others do not.
func (p rater) newSubstitutes(items iter.Seq[*vector.Item]) Substitutes {
	r := Substitutes{Of: make([]int, len(p.Groups)), priced: make([]bool, len(p.Groups))}
	priced := 0
	for i := range p.Groups {
		r.Of[i], r.priced[i] = i, p.Groups[i].Price != nil
		if r.priced[i] {
			priced++
		}
	}
	if priced == 0 || priced == len(p.Groups) {
		return r
	}
	for it := range items {
		r.join(p.fitFor(it))
	}
	for i := range r.Of {
		r.Of[i] = r.first(i)
		r.priced[r.Of[i]] = r.priced[r.Of[i]] && r.priced[i]
	}
	return r
}

// fitFor lists the open groups that could be launched for an item. Work without accelerators does not use groups with
// accelerators if another group can serve it.
func (p rater) fitFor(it *vector.Item) []int {
	var plain, accelerated []int
	for i := range p.Groups {
		g := &p.Groups[i]
		switch {
		case g.Blocked != "" || g.MaxPods < g.Hosts || !it.Suits(g.Shape):
		case g.Shape.Accelerated:
			accelerated = append(accelerated, i)
		default:
			plain = append(plain, i)
		}
	}
	if len(plain) > 0 && !it.Accelerator {
		return plain
	}
	return append(plain, accelerated...)
}

func (r *Substitutes) first(i int) int {
	for r.Of[i] != i {
		i = r.Of[i]
	}
	return i
}

func (r *Substitutes) join(groups []int) {
	for _, i := range groups {
		a, b := r.first(groups[0]), r.first(i)
		r.Of[max(a, b)] = min(a, b)
	}
}

// costs returns the cost of one replica of each group. Groups without a price are rated by their scarce resources at
// the lowest price of any group, so that a plan can compare different kinds of work.
func (p rater) costs(r *Substitutes) []float64 {
	cost := make([]float64, len(p.Groups))
	rate := 0.0
	for i := range p.Groups {
		g := &p.Groups[i]
		cost[i] = p.Holding(g.Shape.Total)*float64(g.Hosts) - p.sliceDiscount(i)
		if !r.priced[r.Of[i]] {
			continue
		}
		price := *g.Price * float64(g.Hosts)
		if each := price / max(cost[i], 1e-9); each > 0 && (rate == 0 || each < rate) {
			rate = each
		}
		cost[i] = price
	}
	for i := range cost {
		if rate > 0 && !r.priced[r.Of[i]] {
			cost[i] *= rate
		}
	}
	p.addSliceBias(cost)
	return cost
}
