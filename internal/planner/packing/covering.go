// Package packing answers one question in numbers: which bins, filled how, take all items at the least cost. It uses a
// knapsack for each bin, a linear program over the fillings found, and rounding (docs/design/0002-the-planner.md). It
// imports package vector alone: it must not know groups, gangs, ledgers or policies.
package packing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// covering is a packing question in numbers: which bins, filled how, take all bundles at least cost. It is answered by
// column generation: a linear program over the fillings known so far says what each bundle is worth, a knapsack per
// bin finds fillings worth more than they cost, until there are none; then whole numbers are fixed one filling after
// the other (docs/design/0002-the-planner.md).
type covering struct {
	items []*vector.Item
	// left counts the bundles of each item that wait, limit how often each bin may still be used.
	left, limit []int64
	// most is how many bundles of each item one host may take; nil is as many as fit.
	most []int64
	bins []Bin
	// budget is what all bins together may still take.
	budget budgets
	// rows counts the rows of the program: items first, then limited bins by limitRow, then budgets by budgetRow.
	rows              int
	limited, limitRow []int
	budgetRow         [len(budgets{})]int
	highestCost       float64
	// nodes is what one knapsack may look at. steps counts the work so far, and work is how much of it there may be.
	nodes, steps, work int
	pool               []column
	// exact: the last knapsacks were searched to the end, so the program's value is a lower bound.
	exact    bool
	knapsack knapsack
}

// Bin is a kind of node that may be filled, or a replica of equal hosts.
type Bin struct {
	Free  vector.Vector
	Cost  float64
	Hosts int64
	Limit int64
	// Accelerators are those of one use together.
	Accelerators int64
	// Existing marks nodes that need not be launched.
	Existing bool
	// Admits says for each item whether it may be put here.
	Admits []Admission
}

// Admission says what an item may do with a bin.
type Admission uint8

const (
	never     Admission = iota
	Secondary           // only beside an item that the bin is meant for
	Primary             // the bin is meant for it
)

// Filling is a filling that was decided on, and how often.
type Filling struct {
	Bin   int
	Uses  []Portion // in one host
	Count int64
}

// pricingNodes bounds one knapsack while columns are looked for; programPivots bounds one linear program.
const (
	pricingNodes  = 400
	programPivots = 2000
	pricingRounds = 60
)

// maxSteps bounds the work on one program. Columns are looked for and rounding goes on as long as it is not used up;
// greedy packing, which every answer ends with, may take as much again, and what it has not packed by then is left
// over. A step is a node of a knapsack, or as much work on the program: some tens of nanoseconds.
const maxSteps = 200_000

// pastBudget reports whether the search for something better is over.
func (c *covering) pastBudget() bool { return c.steps > c.work }

// outOfWork reports whether all work on the program is over.
func (c *covering) outOfWork() bool { return c.steps > 2*c.work }

func newCovering(w *Demand, bins []Bin, budget budgets) *covering {
	c := &covering{
		items:  w.Items,
		left:   w.Left,
		most:   w.Most,
		bins:   bins,
		budget: budget,
		nodes:  pricingNodes,
		work:   maxSteps,
	}
	for i := range bins {
		c.limit = append(c.limit, min(bins[i].Limit, c.useful(i)))
		c.highestCost = max(c.highestCost, bins[i].Cost)
	}
	c.highestCost = max(c.highestCost, 1e-9)
	c.layRows()
	c.seed()
	return c
}

// useful is how often a bin could be used at all: not more often than bundles wait.
func (c *covering) useful(i int) (most int64) {
	for at, a := range c.bins[i].Admits {
		if a != never {
			most += c.left[at]
		}
	}
	return most
}

// seed makes the first columns: each bin filled with one item alone.
func (c *covering) seed() {
	for b := range c.bins {
		for i, a := range c.bins[b].Admits {
			if n := c.bins[b].Free.Times(c.items[i].Need, c.perHost(b, i)); a == Primary && n > 0 {
				c.pool = append(c.pool, column{b, c.bins[b].Cost, []Portion{{i, n}}})
			}
		}
	}
}

// perHost is how many bundles of an item one host of a bin can have a use for.
func (c *covering) perHost(b, i int) int64 {
	hosts := c.bins[b].Hosts
	n := (c.left[i] + hosts - 1) / hosts
	if c.most != nil {
		n = min(n, c.most[i])
	}
	return n
}

// solve answers the linear program. It returns its value in s.
func (c *covering) solve(s *simplex) {
	for range pricingRounds {
		if !s.improve(c.pool) {
			c.exact = false
			return
		}
		c.exact = true
		found := false
		for b := range c.bins {
			if c.pastBudget() {
				c.exact = false
				return
			}
			if c.limit[b] <= 0 {
				continue
			}
			if col, ok := c.generate(s, b); ok {
				c.pool = append(c.pool, col)
				found = true
			}
		}
		if !found {
			return
		}
	}
	c.exact = false
}

// generate looks for the filling of one bin that is worth most more than it costs.
func (c *covering) generate(s *simplex, b int) (column, bool) {
	bin := &c.bins[b]
	hosts := float64(bin.Hosts)
	cost := bin.Cost + s.binPrice(b)
	c.knapsack.kinds = c.knapsack.kinds[:0]
	mixed := slices.Contains(bin.Admits, Secondary)
	for i, a := range bin.Admits {
		// What is worth nothing may justify a bin still.
		if a == never || c.left[i] == 0 || s.dual[i] <= 0 && !(mixed && a == Primary) {
			continue
		}
		c.knapsack.kinds = append(
			c.knapsack.kinds,
			kind{
				item:    i,
				need:    c.items[i].Need,
				limit:   c.perHost(b, i),
				value:   max(s.dual[i], 0) * hosts,
				primary: a == Primary,
			},
		)
	}
	least := cost + tolerance*c.highestCost
	value := c.search(bin.Free)
	if value <= least {
		return column{}, false
	}
	uses, fit := c.knapsack.filling()
	if mixed && !fit {
		if uses, value = c.forceNative(b, least); value <= least {
			return column{}, false
		}
	}
	slices.SortFunc(uses, func(a, b Portion) int { return a.Item - b.Item })
	return column{b, bin.Cost, uses}, true
}

// search fills a bin from the kinds laid out in the knapsack.
func (c *covering) search(free vector.Vector) float64 {
	value := c.knapsack.solve(free, c.nodes)
	c.steps += c.nodes - max(c.knapsack.nodes, 0)
	c.exact = c.exact && c.knapsack.complete
	return value
}

// forceNative finds the best filling that has something the bin is meant for.
func (c *covering) forceNative(b int, least float64) (best []Portion, most float64) {
	kinds := slices.Clone(c.knapsack.kinds)
	most = least
	for _, must := range kinds {
		free := slices.Clone(c.bins[b].Free)
		if c.outOfWork() || !must.primary || free.Times(must.need, must.limit) == 0 {
			continue
		}
		free.Subtract(must.need, 1)
		c.knapsack.kinds = append(c.knapsack.kinds[:0], kinds...)
		for i := range c.knapsack.kinds {
			if c.knapsack.kinds[i].item == must.item {
				c.knapsack.kinds[i].limit--
			}
		}
		value := must.value + c.search(free)
		if value > most {
			uses, _ := c.knapsack.filling()
			best, most = withOne(uses, must.item), value
		}
	}
	return best, most
}

func withOne(uses []Portion, item int) []Portion {
	for i := range uses {
		if uses[i].Item == item {
			uses[i].Count++
			return uses
		}
	}
	return append(uses, Portion{item, 1})
}
