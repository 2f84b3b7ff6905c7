package planner

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// attempt is a packing with what it leaves.
type attempt struct {
	fillings []packed
	left     []int64
	unserved int64
	cost     float64
}

// nothing is worse than any attempt.
func (c *covering) nothing() attempt { return attempt{unserved: math.MaxInt64} }

func (c *covering) attempt(fillings []packed) attempt {
	return attempt{slices.Clone(fillings), slices.Clone(c.left), vector.Sum(c.left), c.costOf(fillings)}
}

// keep takes the other attempt if it serves more, or as much for less.
func (a *attempt) keep(other attempt) {
	if other.unserved < a.unserved || other.unserved == a.unserved && other.cost < a.cost*(1-1e-9) {
		*a = other
	}
}

// finished packs what is left greedily: the filling that is worth most for its cost again and again. Demand and limits
// are as before afterwards.
func (c *covering) finished(dual []float64, chosen []packed) attempt {
	left, limit, budget := slices.Clone(c.left), slices.Clone(c.limit), c.budget
	all := slices.Clone(chosen)
	for vector.Sum(c.left) > 0 && !c.spent() {
		best, most := column{bin: -1}, 0.0
		for b := range c.bins {
			if c.affordable(b) == 0 {
				continue
			}
			uses, value := c.fullest(b, dual)
			if ratio := value / max(c.bins[b].cost, 1e-9*c.dearest); ratio > most {
				best, most = column{b, c.bins[b].cost, uses}, ratio
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

// repeats is how often a filling is needed in full, at least once.
func (c *covering) repeats(col *column) int64 {
	times := int64(vector.MaxCount)
	for _, u := range col.uses {
		times = min(times, c.left[u.item]/(u.count*c.bins[col.bin].hosts))
	}
	return max(times, 1)
}

// least is what a bundle counts for at least, in shares of the dearest bin: one that rides along for nothing must be
// placed all the same.
const least = 1e-4

// fullest fills one bin with what is worth most. Bundles that the bin is not meant for come along only beside others.
func (c *covering) fullest(b int, dual []float64) ([]portion, float64) {
	bin := &c.bins[b]
	hosts := float64(bin.hosts)
	c.sack.kinds = c.sack.kinds[:0]
	mixed := slices.Contains(bin.admits, rides)
	for i, a := range bin.admits {
		if a == never || c.left[i] == 0 {
			continue
		}
		value := max(dual[i], least*c.dearest) * hosts
		c.sack.kinds = append(c.sack.kinds, kind{item: i, need: c.items[i].Need, limit: c.perHost(b, i), value: value, native: a == native})
	}
	value := c.search(bin.free)
	uses, fit := c.sack.filling()
	if mixed && !fit {
		uses, value = c.forceNative(b, 0)
	}
	return uses, value
}
