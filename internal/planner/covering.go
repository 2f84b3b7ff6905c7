package planner

import (
	"cmp"
	"math"
	"slices"
)

// covering is a packing question in numbers: which bins, filled how, take all bundles at least cost. It is answered by
// column generation: a linear program over the fillings known so far says what each bundle is worth, a knapsack per
// bin finds fillings worth more than they cost, until there are none; then whole numbers are fixed one filling after
// the other (docs/design/0002-the-planner.md).
type covering struct {
	items []*item
	// left counts the bundles of each item that wait, limit how often each bin may still be used.
	left, limit []int64
	bins        []bin
	// spare counts the pods that all bins together may launch, most those in the beginning.
	spare, most int64
	// rows counts the rows of the program: items first, then limited bins by limitRow, then the bound on all pods.
	rows              int
	limited, limitRow []int
	spareRow          int
	dearest           float64
	// nodes is what one knapsack may look at. steps counts the work so far.
	nodes, steps int
	pool         []column
	// exact: the last knapsacks were searched to the end, so the program's value is a lower bound.
	exact bool
	sack  knapsack
}

// bin is a kind of node that may be filled, or a replica of equal hosts.
type bin struct {
	free  vector
	cost  float64
	hosts int64
	limit int64
	// there tells nodes that need not be launched.
	there bool
	// admits says for each item whether it may be put here.
	admits []admission
}

// admission says what an item may do with a bin.
type admission uint8

const (
	never  admission = iota
	rides            // only beside an item that the bin is meant for
	native           // the bin is meant for it
)

// packed is a filling that was decided on, and how often.
type packed struct {
	bin   int
	uses  []portion // in one host
	count int64
}

// pricingNodes bounds one knapsack while columns are looked for; programPivots bounds one linear program.
const (
	pricingNodes  = 400
	programPivots = 2000
	pricingRounds = 60
)

// maxSteps bounds the search for something better than the first answer. A step is a node of a knapsack, or as much
// work on the program: some tens of nanoseconds.
const maxSteps = 200_000

func newCovering(items []*item, left []int64, bins []bin, spare int64) *covering {
	c := &covering{items: items, left: left, bins: bins, spare: min(spare, maxCount), most: min(spare, maxCount), nodes: pricingNodes}
	for i := range bins {
		c.limit = append(c.limit, min(bins[i].limit, c.useful(i)))
		c.dearest = max(c.dearest, bins[i].cost)
	}
	c.dearest = max(c.dearest, 1e-9)
	c.layRows()
	c.seed()
	return c
}

// useful is how often a bin could be used at all: not more often than bundles wait.
func (c *covering) useful(i int) (most int64) {
	for at, a := range c.bins[i].admits {
		if a != never {
			most += c.left[at]
		}
	}
	return most
}

// seed makes the first columns: each bin filled with one item alone.
func (c *covering) seed() {
	for b := range c.bins {
		for i, a := range c.bins[b].admits {
			if n := c.bins[b].free.times(c.items[i].need, c.perHost(b, i)); a == native && n > 0 {
				c.pool = append(c.pool, column{b, c.bins[b].cost, []portion{{i, n}}})
			}
		}
	}
}

// perHost is how many bundles of an item one host of a bin can have a use for.
func (c *covering) perHost(b, i int) int64 {
	hosts := c.bins[b].hosts
	return (c.left[i] + hosts - 1) / hosts
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
	hosts := float64(bin.hosts)
	cost := bin.cost + s.binPrice(b)
	c.sack.kinds = c.sack.kinds[:0]
	mixed := false
	for i, a := range bin.admits {
		if a == never || c.left[i] == 0 || s.dual[i] <= tolerance {
			continue
		}
		mixed = mixed || a == rides
		c.sack.kinds = append(c.sack.kinds, kind{item: i, need: c.items[i].need, limit: c.perHost(b, i), value: s.dual[i] * hosts, native: a == native})
	}
	least := cost + tolerance*c.dearest
	value := c.search(bin.free)
	if value <= least {
		return column{}, false
	}
	uses, fit := c.sack.filling()
	if mixed && !fit {
		if uses, value = c.forceNative(b, least); value <= least {
			return column{}, false
		}
	}
	slices.SortFunc(uses, func(a, b portion) int { return a.item - b.item })
	return column{b, bin.cost, uses}, true
}

// search fills a bin from the kinds laid out in the knapsack.
func (c *covering) search(free vector) float64 {
	value := c.sack.solve(free, c.nodes)
	c.steps += c.nodes - max(c.sack.nodes, 0)
	c.exact = c.exact && c.sack.complete
	return value
}

// forceNative finds the best filling that has something the bin is meant for.
func (c *covering) forceNative(b int, least float64) (best []portion, most float64) {
	kinds := slices.Clone(c.sack.kinds)
	most = least
	for _, must := range kinds {
		free := slices.Clone(c.bins[b].free)
		if !must.native || free.times(must.need, must.limit) == 0 {
			continue
		}
		free.subtract(must.need, 1)
		c.sack.kinds = append(c.sack.kinds[:0], kinds...)
		for i := range c.sack.kinds {
			if c.sack.kinds[i].item == must.item {
				c.sack.kinds[i].limit--
			}
		}
		value := must.value + c.search(free)
		if value > most {
			uses, _ := c.sack.filling()
			best, most = withOne(uses, must.item), value
		}
	}
	return best, most
}

func withOne(uses []portion, item int) []portion {
	for i := range uses {
		if uses[i].item == item {
			uses[i].count++
			return uses
		}
	}
	return append(uses, portion{item, 1})
}

// roundingSlack is how far from a whole number counts as one; it covers what perturbation moves.
const roundingSlack = 1e-3

// dive turns fractions into whole fillings: all that the program uses at least once are fixed as often as that, then
// the one nearest to once, and the program is solved again for what is left. What no bin takes stays in c.left.
//
// Rounding up is dear where a large bin is used a little, so before each time what is left is also packed greedily by
// what the program says that bundles are worth, and the best of all these packings is returned.
func (c *covering) dive(s *simplex, choice int) []packed {
	var chosen []packed
	best := c.nothing()
	for {
		cols, counts := s.solution()
		if !c.fixWhole(cols, counts, &chosen) {
			best.keep(c.finished(s.dual, chosen))
			at := c.nearest(cols, counts, choice)
			if at < 0 {
				break
			}
			choice = 0
			c.fix(&c.pool[cols[at]], 1, &chosen)
		}
		if sum(c.left) == 0 || c.costOf(chosen) >= best.cost && best.unserved == 0 {
			break
		}
		s.restart()
		c.solve(s)
	}
	best.keep(c.attempt(chosen))
	copy(c.left, best.left)
	return best.fillings
}

// solution lists the columns in use with how often.
func (s *simplex) solution() (columns []int, counts []float64) {
	for r, j := range s.basis {
		if j >= 0 && s.value[r] > roundingSlack {
			columns, counts = append(columns, j), append(counts, s.value[r])
		}
	}
	return columns, counts
}

func (c *covering) fixWhole(cols []int, counts []float64, chosen *[]packed) bool {
	fixed := false
	for at, j := range cols {
		if n := int64(counts[at] + roundingSlack); n > 0 {
			fixed = c.fix(&c.pool[j], n, chosen) || fixed
		}
	}
	return fixed
}

// nearest picks the column to round up: the choice-th largest fraction, the first dive takes the largest.
func (c *covering) nearest(cols []int, counts []float64, choice int) int {
	order := make([]int, 0, len(cols))
	for at, j := range cols {
		if c.applicable(&c.pool[j]) {
			order = append(order, at)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(c.pool[cols[a]].bin, c.pool[cols[b]].bin), cmp.Compare(cols[a], cols[b]))
	})
	if len(order) == 0 {
		return -1
	}
	return order[min(choice, len(order)-1)]
}

func (c *covering) applicable(col *column) bool {
	b := &c.bins[col.bin]
	return c.limit[col.bin] > 0 && (b.there || c.spare >= b.hosts) &&
		slices.ContainsFunc(col.uses, func(u portion) bool { return c.left[u.item] > 0 })
}

// fix decides on a filling, as often as it serves something, and takes what it covers off the demand.
func (c *covering) fix(col *column, n int64, chosen *[]packed) bool {
	b := &c.bins[col.bin]
	n = min(n, c.limit[col.bin])
	if !b.there {
		n = min(n, c.spare/b.hosts)
	}
	fixed := false
	for n > 0 {
		// As often as every use is needed in full, else once, with what is left.
		uses, times := c.clipped(col, n)
		if times == 0 {
			break
		}
		*chosen = append(*chosen, packed{col.bin, uses, times})
		for _, u := range uses {
			c.left[u.item] = max(0, c.left[u.item]-u.count*b.hosts*times)
		}
		c.limit[col.bin] -= times
		if !b.there {
			c.spare -= times * b.hosts
		}
		n -= times
		fixed = true
	}
	return fixed
}

func (c *covering) clipped(col *column, n int64) ([]portion, int64) {
	hosts := c.bins[col.bin].hosts
	times := n
	for _, u := range col.uses {
		times = min(times, c.left[u.item]/(u.count*hosts))
	}
	if times > 0 {
		return col.uses, times
	}
	var uses []portion
	for _, u := range col.uses {
		if count := min(u.count, c.perHost(col.bin, u.item)); count > 0 {
			uses = append(uses, portion{u.item, count})
		}
	}
	if len(uses) == 0 {
		return nil, 0
	}
	return uses, 1
}

// costOf adds up what a packing launches.
func (c *covering) costOf(all []packed) (sum float64) {
	for _, p := range all {
		if !c.bins[p.bin].there {
			sum += float64(p.count) * c.bins[p.bin].cost
		}
	}
	return sum
}

// packing is the best of several dives.
type packing struct {
	fillings []packed
	unserved int64
	cost     float64
	bound    float64 // what the program says that nothing can be below; 0 when it is not known
}

// best finds the packing that serves most, then costs least.
func (c *covering) best(dives int) packing {
	s := newSimplex(c, programPivots)
	c.solve(s)
	bound := 0.0
	if c.exact && !s.leavesOver() {
		bound = s.objective()
	}
	dual := slices.Clone(s.dual)
	found := c.explore(s, dives, bound)
	if found.cost > bound*(1+closeEnough) && found.unserved == 0 {
		c.refine(s, dual, &found)
	}
	return found
}

// fit finds a packing into bins whatever they cost. It reports false when not even fractions of fillings would serve
// everything.
func (c *covering) fit(dives int) (packing, bool) {
	s := newSimplex(c, programPivots)
	c.solve(s)
	if s.leavesOver() {
		return packing{}, false
	}
	return c.explore(s, dives, 0), true
}

// explore dives from a solved program with several first choices.
func (c *covering) explore(s *simplex, dives int, bound float64) packing {
	left, limit, spare := slices.Clone(c.left), slices.Clone(c.limit), c.spare
	best := packing{unserved: math.MaxInt64}
	for choice := range dives {
		copy(c.left, left)
		copy(c.limit, limit)
		c.spare = spare
		if choice > 0 {
			s.pivots = programPivots
			s.restart()
			c.solve(s)
		}
		fillings := c.dive(s, choice)
		found := packing{fillings, sum(c.left), c.costOf(fillings), bound}
		if found.unserved < best.unserved || found.unserved == best.unserved && found.cost < best.cost*(1-1e-9) {
			best = found
		}
		if best.unserved == 0 && best.cost <= bound*(1+1e-6) || c.steps > maxSteps {
			break
		}
	}
	return best
}
