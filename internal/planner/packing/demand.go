package packing

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// roundings is how many times fractions are rounded. More roundings find almost nothing that two have missed.
const roundings = 2

// Demand is the waiting part of a batch: the items with their indexes in it.
type Demand struct {
	Items []*vector.Item
	Left  []int64
	At    []int
	// Most is how many bundles of each item one node may take; nil means as many as fit.
	Most []int64
}

// Fit packs all waiting demand into bins, whatever they cost. It reports false if not even fractional fillings would
// serve everything, and returns the steps of work that it took.
func Fit(w *Demand, bins []Bin) (found Result, possible bool, steps int) {
	c := newCovering(w, bins, budgets{math.MaxInt64, math.MaxInt64})
	found, possible = c.fit()
	return found, possible, c.steps
}

// Cover answers the program and returns the steps of work that it took. If work without accelerators could use nodes
// with accelerators, the items that need accelerators are packed alone first: all items together must not launch more
// accelerators than that.
func Cover(w *Demand, bins []Bin, spare int64) (Result, int) {
	steps := 0
	budget := budgets{podBudget: min(spare, vector.MaxCount), acceleratorBudget: math.MaxInt64}
	if alone, bins := w.onAccelerators(bins); len(alone.Items) > 0 && len(alone.Items) < len(w.Items) {
		c := newCovering(&alone, bins, budget)
		var most int64
		for _, f := range c.best().Fillings {
			most += f.Count * bins[f.Bin].Accelerators
		}
		budget[acceleratorBudget] = most
		steps = c.steps
	}
	c := newCovering(w, bins, budget)
	found := c.best()
	return found, steps + c.steps
}

// onAccelerators picks the items that launch nodes with accelerators, if other items could use those nodes too, and the
// bins as these items see them.
func (w *Demand) onAccelerators(bins []Bin) (Demand, []Bin) {
	var alone Demand
	rider := false
	needs := make([]bool, len(w.Items))
	for i := range bins {
		for at, a := range bins[i].Admits {
			needs[at] = needs[at] || a == Primary && bins[i].Accelerators > 0
			rider = rider || a == Secondary && bins[i].Accelerators > 0
		}
	}
	if !rider {
		return alone, bins
	}
	own := slices.Clone(bins)
	for i := range own {
		own[i].Admits = nil
	}
	for at, needed := range needs {
		if needed {
			alone.Items, alone.Left, alone.At = append(
				alone.Items,
				w.Items[at],
			), append(
				alone.Left,
				w.Left[at],
			), append(
				alone.At,
				w.At[at],
			)
			if w.Most != nil {
				alone.Most = append(alone.Most, w.Most[at])
			}
			for i := range own {
				own[i].Admits = append(own[i].Admits, bins[i].Admits[at])
			}
		}
	}
	return alone, own
}

// Portion is how many bundles of one item go onto a node.
type Portion struct {
	Item  int
	Count int64
}

// LowerBound returns the value of the covering program, which no packing costs less than, with a limit on the nodes of
// each knapsack. served is false if not even fractional fillings serve everything. exact is false if some knapsack was
// cut short, so that the value is not a bound. Tests judge plans by it.
func LowerBound(w *Demand, bins []Bin, nodes int) (value float64, served, exact bool) {
	c := newCovering(w, bins, budgets{math.MaxInt64, math.MaxInt64})
	c.nodes, c.work = nodes, math.MaxInt/2
	s := newSimplex(c, math.MaxInt)
	c.solve(s)
	return s.objective(), !s.leavesOver(), c.exact
}
