package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// roundingSlack is how far from a whole number counts as one; it covers what perturbation moves.
const roundingSlack = 1e-3

// dive turns fractions into whole fillings: all that the program uses at least once are fixed as often as that, then
// the one nearest to once, and the program is solved again for what is left. What no bin takes stays in c.left.
//
// Rounding up is dear where a large bin is used a little, so before each time what is left is also packed greedily by
// what the program says that bundles are worth, and the best of all these packings is returned. With the budget of work used up
// the last of them ends the dive.
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
		if vector.Sum(c.left) == 0 || c.tired() || c.costOf(chosen) >= best.cost && best.unserved == 0 {
			break
		}
		s.restart()
		c.solve(s)
	}
	if vector.Sum(c.left) > 0 && c.tired() {
		best.keep(c.finished(s.dual, chosen))
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
	return c.affordable(col.bin) > 0 && c.justified(col.bin, col.uses)
}

// justified reports whether something waits among the uses that the bin is meant for.
func (c *covering) justified(b int, uses []portion) bool {
	return slices.ContainsFunc(uses, func(u portion) bool { return c.left[u.item] > 0 && c.bins[b].admits[u.item] == native })
}

// fix decides on a filling, as often as it serves something, and takes what it covers off the demand.
func (c *covering) fix(col *column, n int64, chosen *[]packed) bool {
	hosts := c.bins[col.bin].hosts
	n = min(n, c.affordable(col.bin))
	fixed := false
	for n > 0 && c.justified(col.bin, col.uses) {
		// As often as every use is needed in full, else once, with what is left.
		uses, times := c.clipped(col, n)
		if times == 0 {
			break
		}
		*chosen = append(*chosen, packed{col.bin, uses, times})
		for _, u := range uses {
			c.left[u.item] = max(0, c.left[u.item]-u.count*hosts*times)
		}
		c.use(col.bin, times)
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
	return c.explore(s, dives, bound)
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

// explore packs greedily by the worths of a solved program, then dives with several first choices.
func (c *covering) explore(s *simplex, dives int, bound float64) packing {
	left, limit, budget := slices.Clone(c.left), slices.Clone(c.limit), c.budget
	greedy := c.finished(s.dual, nil)
	best := packing{greedy.fillings, greedy.unserved, greedy.cost, bound}
	for choice := range dives {
		copy(c.left, left)
		copy(c.limit, limit)
		c.budget = budget
		if choice > 0 {
			s.pivots = programPivots
			s.restart()
			c.solve(s)
		}
		fillings := c.dive(s, choice)
		found := packing{fillings, vector.Sum(c.left), c.costOf(fillings), bound}
		if found.unserved < best.unserved || found.unserved == best.unserved && found.cost < best.cost*(1-1e-9) {
			best = found
		}
		if best.unserved == 0 && best.cost <= bound*(1+1e-6) || c.tired() {
			break
		}
	}
	return best
}
