// Package packing answers one question in numbers: with which fillings do all items fit into bins? It uses a knapsack
// for each bin, and values of the items that rise as long as some are left (docs/design/0002-the-planner.md). It must
// not know groups, gangs, ledgers or policies: it imports only package vector.
package packing

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// Demand is the waiting part of a batch: the items with their indexes in it, and how many bundles of each wait.
type Demand struct {
	Items []*vector.Item
	Left  []int64
	At    []int
}

// Bin is a kind of node that may be filled, up to Limit times. Admits says for each item whether it may be put there.
type Bin struct {
	Free   vector.Vector
	Limit  int64
	Admits []bool
}

// Filling is a chosen filling of a bin and how often it is used.
type Filling struct {
	Bin   int
	Uses  []Portion
	Count int64
}

// Portion is how many bundles of one item go onto a node.
type Portion struct {
	Item  int
	Count int64
}

// Limits of the work on one question. A step is a node of a knapsack, some tens of nanoseconds.
const (
	maxSteps      = 200_000
	knapsackNodes = 400
	// attempts is how often the items are packed. Of 200 clusters whose pods join one by one, the last ones find again
	// after 16 attempts at the latest what their pods were launched for.
	attempts = 16
)

// Fit packs waiting bundles into bins so that as many as possible are served, and returns the steps that it took.
//
// A bundle is worth the room that it takes, and a unit of a resource is worth more the scarcer it is. An attempt fills
// the bin next whose filling is worth most for its room. What an attempt leaves is worth more in the next one.
func Fit(w *Demand, bins []Bin) (best []Filling, steps int) {
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

// packer is a question with the values of its items and of the room in its bins.
type packer struct {
	*Demand
	bins           []Bin
	value, perRoom []float64
	steps          int
	knapsack       knapsack
}

func newPacker(w *Demand, bins []Bin) *packer {
	p := &packer{Demand: w, bins: bins, value: make([]float64, len(w.Items)), perRoom: make([]float64, len(bins))}
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
func (p *packer) attempt() (fillings []Filling, left []int64) {
	left = slices.Clone(p.Left)
	limit := make([]int64, len(p.bins))
	for b := range p.bins {
		limit[b] = p.bins[b].Limit
	}
	for vector.Sum(left) > 0 && p.steps <= 2*maxSteps {
		best, most := Filling{Bin: -1}, 0.0
		for b := range p.bins {
			if limit[b] == 0 {
				continue
			}
			uses, value := p.fullest(b, left)
			if ratio := value / max(p.perRoom[b], 1e-12); ratio > most {
				best, most = Filling{Bin: b, Uses: uses, Count: limit[b]}, ratio
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
func (p *packer) fullest(b int, left []int64) ([]Portion, float64) {
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
