package placing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// waiting is the waiting part of a batch: the items with their indexes in it, and how many bundles of each wait.
type waiting struct {
	Items []*vector.Item
	Left  []int64
	At    []int
}

// bin is a kind of node that may be filled, up to Limit times. Admits says for each item whether it may be put there.
type bin struct {
	Free   vector.Vector
	Limit  int64
	Admits []bool
}

// filling is a chosen filling of a bin and how often it is used.
type filling struct {
	Bin   int
	Uses  []portion
	Count int64
}

// portion is how many bundles of one item go onto a node.
type portion struct {
	Item  int
	Count int64
}

// Limits of the work of one packing. A step is a node of a knapsack, some tens of nanoseconds.
const (
	maxSteps      = 60_000
	knapsackNodes = 200
	// attempts is how often the items are packed, until all fit. With fewer, plans launch again while pods join
	// (TestPodsThatJoinOneByOneAreNotPlannedForAgain).
	attempts = 16
)

// pack packs waiting bundles into bins so that as many as possible are served, and returns the steps that it took.
//
// A bundle is worth the room that it takes, and a unit of a resource is worth more the scarcer it is. An attempt fills
// the bin next whose filling is worth most for its room. What an attempt leaves is worth more in the next one.
func pack(w *waiting, bins []bin) (best []filling, steps int) {
	p := newPacker(w, bins)
	var least int64 = -1
	for range attempts {
		fillings, left := p.attempt()
		if unserved := vector.Sum(left); least < 0 || unserved < least {
			best, least = fillings, unserved
		}
		if least == 0 || p.steps > maxSteps {
			break
		}
		for i, n := range left {
			p.value[i] *= 1 + float64(n)/float64(w.Left[i])
		}
	}
	return best, p.steps
}

// packer is the waiting bundles and the bins, with the values of items and of the room in bins
// (docs/design/0002-the-planner.md).
type packer struct {
	*waiting
	bins           []bin
	value, perRoom []float64
	steps          int
	knapsack       knapsack
}

func newPacker(w *waiting, bins []bin) *packer {
	p := &packer{waiting: w, bins: bins, value: make([]float64, len(w.Items)), perRoom: make([]float64, len(bins))}
	width := len(bins[0].Free)
	room, wanted := make([]float64, width), make([]float64, width)
	for b := range bins {
		for r, amount := range bins[b].Free {
			room[r] += float64(amount) * float64(bins[b].Limit)
		}
	}
	for i, it := range w.Items {
		for _, t := range it.Need {
			wanted[t.Resource] += float64(t.Amount) * float64(w.Left[i])
		}
	}
	worth := func(r int) float64 { return wanted[r] / max(room[r]*room[r], 1) }
	for i, it := range w.Items {
		for _, t := range it.Need {
			p.value[i] += float64(float64(t.Amount) * worth(t.Resource))
		}
	}
	for b := range bins {
		for r, amount := range bins[b].Free {
			p.perRoom[b] += float64(float64(amount) * worth(r))
		}
	}
	return p
}

// attempt packs greedily: it repeats the filling with the most value for its room.
func (p *packer) attempt() (fillings []filling, left []int64) {
	left = slices.Clone(p.Left)
	limit := make([]int64, len(p.bins))
	for b := range p.bins {
		limit[b] = p.bins[b].Limit
	}
	for vector.Sum(left) > 0 && p.steps <= 2*maxSteps {
		best, most := filling{Bin: -1}, 0.0
		for b := range p.bins {
			if limit[b] == 0 {
				continue
			}
			uses, value := p.fullest(b, left)
			if ratio := value / max(p.perRoom[b], 1e-12); ratio > most {
				best, most = filling{Bin: b, Uses: uses, Count: limit[b]}, ratio
			}
		}
		if best.Bin < 0 {
			break
		}
		for _, u := range best.Uses {
			best.Count = min(best.Count, left[u.Item]/u.Count)
		}
		for _, u := range best.Uses {
			left[u.Item] -= u.Count * best.Count
		}
		limit[best.Bin] -= best.Count
		fillings = append(fillings, best)
	}
	return fillings, left
}

// fullest fills one bin with the most valuable items.
func (p *packer) fullest(b int, left []int64) ([]portion, float64) {
	p.knapsack.kinds = p.knapsack.kinds[:0]
	for i, admitted := range p.bins[b].Admits {
		if admitted && left[i] > 0 {
			p.knapsack.kinds = append(p.knapsack.kinds,
				kind{item: i, need: p.Items[i].Need, limit: left[i], value: p.value[i]})
		}
	}
	value := p.knapsack.solve(p.bins[b].Free, knapsackNodes)
	p.steps += knapsackNodes - max(p.knapsack.nodes, 0)
	return p.knapsack.filling(), value
}
