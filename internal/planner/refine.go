package planner

import (
	"cmp"
	"slices"
)

// closeEnough is how far above the bound a packing may cost without being looked at again.
const closeEnough = 1e-3

// refinements is how often some fillings are taken back and packed anew; refinePivots bounds each program for that.
const (
	refinements  = 24
	refinePivots = 200
)

// refine takes back a few fillings at a time, those that serve little for their cost and some others, and keeps what
// packs their bundles cheaper. Rounding wastes most at the end of a dive, and this is where it is won back.
func (c *covering) refine(s *simplex, dual []float64, best *packing) {
	c.rest(best.fillings)
	draw := sequence(1)
	for round := range refinements {
		if len(best.fillings) < 2 || c.steps > maxSteps {
			return
		}
		taken, kept := c.takeBack(best.fillings, dual, 2+round%5, &draw)
		before := c.costOf(taken)
		s.pivots = refinePivots
		s.restart()
		c.solve(s)
		anew := c.dive(s, round%2)
		if sum(c.left) == 0 && c.costOf(anew) < before*(1-1e-9) {
			best.fillings = append(kept, anew...)
			best.cost = c.costOf(best.fillings)
			continue
		}
		c.rest(best.fillings)
	}
}

// rest sets demand and limits to what a packing leaves.
func (c *covering) rest(fillings []packed) {
	clear(c.left)
	for i := range c.bins {
		c.limit[i] = c.bins[i].limit
	}
	c.budget = c.most
	for _, f := range fillings {
		c.use(f.bin, f.count)
	}
}

// takeBack removes count single fillings from a packing: the least efficient one, and others at random. What they
// served waits again.
func (c *covering) takeBack(fillings []packed, dual []float64, count int, draw *sequence) (taken, kept []packed) {
	kept = slices.Clone(fillings)
	slices.SortStableFunc(kept, func(a, b packed) int { return cmp.Compare(c.efficiency(a, dual), c.efficiency(b, dual)) })
	for at := 0; count > 0 && len(kept) > 0; count-- {
		one := kept[at]
		one.count = 1
		taken = append(taken, one)
		if kept[at].count--; kept[at].count == 0 {
			kept = slices.Delete(kept, at, at+1)
		}
		c.use(one.bin, -1)
		for _, u := range one.uses {
			c.left[u.item] += u.count * c.bins[one.bin].hosts
		}
		if len(kept) > 0 {
			at = draw.below(len(kept))
		}
	}
	return taken, kept
}

// efficiency is what a filling serves for its cost.
func (c *covering) efficiency(f packed, dual []float64) (sum float64) {
	for _, u := range f.uses {
		sum += float64(float64(u.count*c.bins[f.bin].hosts) * dual[u.item])
	}
	return sum / max(c.bins[f.bin].cost, 1e-9)
}

// sequence is a fixed row of numbers without visible order: Knuth's linear congruential generator. Equal questions get
// equal answers, so chance has no place here.
type sequence uint64

func (s *sequence) below(n int) int {
	*s = *s*6364136223846793005 + 1442695040888963407
	return int(uint64(*s)>>33) % n
}
