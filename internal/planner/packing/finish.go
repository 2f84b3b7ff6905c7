package packing

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// attempt is a packing and what it leaves.
type attempt struct {
	fillings []Filling
	left     []int64
	unserved int64
	cost     float64
}

// nothing is worse than any attempt.
func (c *covering) nothing() attempt { return attempt{unserved: math.MaxInt64} }

func (c *covering) attempt(fillings []Filling) attempt {
	return attempt{slices.Clone(fillings), slices.Clone(c.left), vector.Sum(c.left), c.costOf(fillings)}
}

// keep takes the other attempt if it serves more, or as much for less.
func (a *attempt) keep(other attempt) {
	if other.unserved < a.unserved || other.unserved == a.unserved && other.cost < a.cost*(1-1e-9) {
		*a = other
	}
}

// finished packs the rest greedily: it repeats the filling with the most value for its cost. It restores demand and
// limits afterwards.
func (c *covering) finished(dual []float64, chosen []Filling) attempt {
	left, limit, budget := slices.Clone(c.left), slices.Clone(c.limit), c.budget
	all := slices.Clone(chosen)
	for vector.Sum(c.left) > 0 && !c.outOfWork() {
		best, most := column{bin: -1}, 0.0
		for b := range c.bins {
			if c.affordable(b) == 0 {
				continue
			}
			uses, value := c.fullest(b, dual)
			if ratio := value / max(c.bins[b].Cost, 1e-9*c.highestCost); ratio > most {
				best, most = column{b, c.bins[b].Cost, uses}, ratio
			}
		}
		if best.bin < 0 || !c.fix(&best, c.repeats(&best), &all) {
			break
		}
	}
	done := c.attempt(all)
	copy(c.left, left)
	copy(c.limit, limit)
	c.budget = budget
	return done
}

// repeats returns how often a filling is needed in full, at least once.
func (c *covering) repeats(col *column) int64 {
	times := int64(vector.MaxCount)
	for _, u := range col.uses {
		times = min(times, c.left[u.Item]/(u.Count*c.bins[col.bin].Hosts))
	}
	return max(times, 1)
}

// least is the minimum value of a bundle, as a share of the most expensive bin. A bundle without a price must be placed
// too.
const least = 1e-4

// fullest fills one bin with the most valuable items. Bundles that the bin is not meant for only join others.
func (c *covering) fullest(b int, dual []float64) ([]Portion, float64) {
	bin := &c.bins[b]
	hosts := float64(bin.Hosts)
	c.knapsack.kinds = c.knapsack.kinds[:0]
	mixed := slices.Contains(bin.Admits, Secondary)
	for i, a := range bin.Admits {
		if a == never || c.left[i] == 0 {
			continue
		}
		value := max(dual[i], least*c.highestCost) * hosts
		c.knapsack.kinds = append(
			c.knapsack.kinds,
			kind{item: i, need: c.items[i].Need, limit: c.perHost(b, i), value: value, primary: a == Primary},
		)
	}
	value := c.search(bin.Free)
	uses, fit := c.knapsack.filling()
	if mixed && !fit {
		uses, value = c.forceNative(b, 0)
	}
	return uses, value
}
