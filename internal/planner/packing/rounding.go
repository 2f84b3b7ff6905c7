package packing

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// roundingSlack is how close to a whole number counts as whole. It covers the perturbation.
const roundingSlack = 1e-3

// round turns fractions into whole fillings. It fixes all fillings that the program uses at least once, as often as
// that, or else the one nearest to once, and solves the program again for the rest. What no bin takes stays in c.left.
//
// Rounding up is expensive if a large bin is used a little. So before each step, the rest is also packed greedily by
// the program's values, and the best of all these packings is returned. If the budget of work is used up, the last one
// ends the rounding.
func (c *covering) round(s *simplex, choice int) []Filling {
	var chosen []Filling
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
		if vector.Sum(c.left) == 0 || c.pastBudget() || c.costOf(chosen) >= best.cost && best.unserved == 0 {
			break
		}
		s.restart()
		c.solve(s)
	}
	if vector.Sum(c.left) > 0 && c.pastBudget() {
		best.keep(c.finished(s.dual, chosen))
	}
	best.keep(c.attempt(chosen))
	copy(c.left, best.left)
	return best.fillings
}

// solution lists the columns in use and how often each is used.
func (s *simplex) solution() (columns []int, counts []float64) {
	for r, j := range s.basis {
		if j >= 0 && s.value[r] > roundingSlack {
			columns, counts = append(columns, j), append(counts, s.value[r])
		}
	}
	return columns, counts
}

func (c *covering) fixWhole(cols []int, counts []float64, chosen *[]Filling) bool {
	fixed := false
	for at, j := range cols {
		if n := int64(counts[at] + roundingSlack); n > 0 {
			fixed = c.fix(&c.pool[j], n, chosen) || fixed
		}
	}
	return fixed
}

// nearest picks the column to round up: the one with the choice-th largest fraction. The first rounding takes the
// largest.
func (c *covering) nearest(cols []int, counts []float64, choice int) int {
	order := make([]int, 0, len(cols))
	for at, j := range cols {
		if c.applicable(&c.pool[j]) {
			order = append(order, at)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(counts[b], counts[a]),
			cmp.Compare(c.pool[cols[a]].bin, c.pool[cols[b]].bin),
			cmp.Compare(cols[a], cols[b]),
		)
	})
	if len(order) == 0 {
		return -1
	}
	return order[min(choice, len(order)-1)]
}

func (c *covering) applicable(col *column) bool {
	return c.affordable(col.bin) > 0 && c.justified(col.bin, col.uses)
}

// justified reports whether the uses contain waiting demand that the bin is meant for.
func (c *covering) justified(b int, uses []Portion) bool {
	return slices.ContainsFunc(
		uses,
		func(u Portion) bool { return c.left[u.Item] > 0 && c.bins[b].Admits[u.Item] == Primary },
	)
}

// fix chooses a filling, as often as it serves something, and subtracts it from the demand.
func (c *covering) fix(col *column, n int64, chosen *[]Filling) bool {
	hosts := c.bins[col.bin].Hosts
	n = min(n, c.affordable(col.bin))
	fixed := false
	for n > 0 && c.justified(col.bin, col.uses) {
		// Use it as often as every portion is needed in full, or else once, with what is left.
		uses, times := c.clipped(col, n)
		if times == 0 {
			break
		}
		*chosen = append(*chosen, Filling{col.bin, uses, times})
		for _, u := range uses {
			c.left[u.Item] = max(0, c.left[u.Item]-u.Count*hosts*times)
		}
		c.use(col.bin, times)
		n -= times
		fixed = true
	}
	return fixed
}

func (c *covering) clipped(col *column, n int64) ([]Portion, int64) {
	hosts := c.bins[col.bin].Hosts
	times := n
	for _, u := range col.uses {
		times = min(times, c.left[u.Item]/(u.Count*hosts))
	}
	if times > 0 {
		return col.uses, times
	}
	var uses []Portion
	for _, u := range col.uses {
		if count := min(u.Count, c.perHost(col.bin, u.Item)); count > 0 {
			uses = append(uses, Portion{u.Item, count})
		}
	}
	if len(uses) == 0 {
		return nil, 0
	}
	return uses, 1
}

// costOf adds up the cost of a packing.
func (c *covering) costOf(all []Filling) (sum float64) {
	for _, p := range all {
		if !c.bins[p.Bin].Existing {
			sum += float64(p.Count) * c.bins[p.Bin].Cost
		}
	}
	return sum
}

// Result is the best of several roundings.
type Result struct {
	Fillings []Filling
	unserved int64
	cost     float64
	bound    float64 // the program's lower bound; 0 if unknown
}

// best finds the packing that serves most, and of those the cheapest.
func (c *covering) best() Result {
	s := newSimplex(c, programPivots)
	c.solve(s)
	bound := 0.0
	if c.exact && !s.leavesOver() {
		bound = s.objective()
	}
	return c.explore(s, bound)
}

// fit finds a packing into bins, whatever they cost. It reports false if not even fractional fillings would serve
// everything.
func (c *covering) fit() (Result, bool) {
	s := newSimplex(c, programPivots)
	c.solve(s)
	if s.leavesOver() {
		return Result{}, false
	}
	return c.explore(s, 0), true
}

// explore packs greedily by the values of a solved program, then rounds with several first choices.
func (c *covering) explore(s *simplex, bound float64) Result {
	left, limit, budget := slices.Clone(c.left), slices.Clone(c.limit), c.budget
	greedy := c.finished(s.dual, nil)
	best := Result{greedy.fillings, greedy.unserved, greedy.cost, bound}
	for choice := range roundings {
		copy(c.left, left)
		copy(c.limit, limit)
		c.budget = budget
		if choice > 0 {
			s.pivots = programPivots
			s.restart()
			c.solve(s)
		}
		fillings := c.round(s, choice)
		found := Result{fillings, vector.Sum(c.left), c.costOf(fillings), bound}
		if found.unserved < best.unserved || found.unserved == best.unserved && found.cost < best.cost*(1-1e-9) {
			best = found
		}
		if best.unserved == 0 && best.cost <= bound*(1+1e-6) || c.pastBudget() {
			break
		}
	}
	return best
}
