// Package packing answers one question in numbers: which bins, with which fillings, hold all items at the least cost.
// It uses a knapsack for each bin, a linear program over the fillings found, and rounding
// (docs/design/0002-the-planner.md). It must not know groups, gangs, ledgers or policies: it imports only package
// vector.
package packing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// covering is a packing question in numbers: which bins, with which fillings, hold all bundles at the least cost.
// Column generation answers it: a linear program over the known fillings gives the value of each bundle, and a knapsack
// per bin finds fillings worth more than they cost, until there are none. Then whole numbers are fixed one filling
// after the other (docs/design/0002-the-planner.md).
type covering struct {
	items []*vector.Item
	// left counts the waiting bundles of each item, limit how often each bin may still be used.
	left, limit []int64
	// most is how many bundles of each item one host may take; nil means as many as fit.
	most []int64
	bins []Bin
	// budget is what all bins together may still take.
	budget budgets
	// rows is the number of rows of the program: items first, then limited bins by limitRow, then budgets by budgetRow.
	rows              int
	limited, limitRow []int
	budgetRow         [len(budgets{})]int
	highestCost       float64
	// nodes limits the search of one knapsack. steps counts the work so far, work is its limit.
	nodes, steps, work int
	pool               []column
	// exact: the last knapsacks were searched completely, so the program's value is a lower bound.
	exact    bool
	knapsack knapsack
}

// Bin is a kind of node that may be filled, or a replica of equal hosts.
type Bin struct {
	Free  vector.Vector
	Cost  float64
	Hosts int64
	Limit int64
	// Accelerators is how many accelerators one use of the bin has.
	Accelerators int64
	// Existing marks nodes that need no launch.
	Existing bool
	// Admits says for each item whether it may be put here.
	Admits []Admission
}

// Admission is what an item may do with a bin.
type Admission uint8

const (
	never     Admission = iota
	Secondary           // only next to an item that the bin is meant for
	Primary             // the bin is meant for it
)

// Filling is a chosen filling and how often it is used.
type Filling struct {
	Bin   int
	Uses  []Portion // in one host
	Count int64
}

// pricingNodes limits one knapsack during column generation; programPivots limits one linear program.
const (
	pricingNodes  = 400
	programPivots = 2000
	pricingRounds = 60
)

// maxSteps limits the work on one program. Column generation and rounding continue until it is used up. The greedy
// packing that ends every answer may take as much again, and what it has not packed by then stays unserved. A step is a
// node of a knapsack, or an equal amount of work on the program: some tens of nanoseconds.
const maxSteps = 200_000

// pastBudget reports whether the search for a better answer has ended.
func (c *covering) pastBudget() bool { return c.steps > c.work }

// outOfWork reports whether all work on the program has ended.
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

// useful returns how often a bin could be used at all: not more often than bundles are waiting.
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

// perHost returns how many bundles of an item one host of a bin can use.
func (c *covering) perHost(b, i int) int64 {
	hosts := c.bins[b].Hosts
	n := (c.left[i] + hosts - 1) / hosts
	if c.most != nil {
		n = min(n, c.most[i])
	}
	return n
}

// solve solves the linear program and leaves its value in s.
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

// generate finds the filling of one bin whose value exceeds its cost the most.
func (c *covering) generate(s *simplex, b int) (column, bool) {
	bin := &c.bins[b]
	hosts := float64(bin.Hosts)
	cost := bin.Cost + s.binPrice(b)
	c.knapsack.kinds = c.knapsack.kinds[:0]
	mixed := slices.Contains(bin.Admits, Secondary)
	for i, a := range bin.Admits {
		// An item without value may still justify a bin.
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

// search fills a bin with the kinds in the knapsack.
func (c *covering) search(free vector.Vector) float64 {
	value := c.knapsack.solve(free, c.nodes)
	c.steps += c.nodes - max(c.knapsack.nodes, 0)
	c.exact = c.exact && c.knapsack.complete
	return value
}

// forceNative finds the best filling with an item that the bin is meant for.
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
