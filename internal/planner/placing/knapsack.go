package placing

import (
	"cmp"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// knapsack finds the most valuable filling of one bin by branch and bound, starting with the bundles that give the most
// value for their space. It stops after a number of nodes with the best filling found so far, which is at least as good
// as taking the bundles in that order.
type knapsack struct {
	kinds []kind
	free  vector.Vector
	// densest[i*len(free)+r] is the highest value of a unit of resource r for kinds from i on.
	densest []float64
	nodes   int
	// looks is how many branches may still be visited, including those that a bound cuts off at once.
	looks   int
	counts  []int64
	best    []int64
	bestSum float64
	kept    []vector.Vector
}

// kind is one item in the knapsack.
type kind struct {
	item    int
	need    []vector.Term
	limit   int64
	value   float64
	density float64
	partly  bool // asks for parts of cards
	// onCards: some term asks for cards.
	onCards bool
}

// looksPerNode limits the branches that are cut off at once per branch that is followed. A bundle that fits a million
// times has a million such branches.
const looksPerNode = 64

// solve fills what is free within a number of branches, and returns the value of the best filling.
func (k *knapsack) solve(free vector.Vector, nodes int) float64 {
	k.order(free)
	k.free = append(k.free[:0], free...)
	k.counts = append(k.counts[:0], make([]int64, len(k.kinds))...)
	k.best = append(k.best[:0], make([]int64, len(k.kinds))...)
	k.nodes, k.looks, k.bestSum = nodes, looksPerNode*nodes, 0
	k.branch(0, 0)
	return k.bestSum
}

// order sorts the kinds by value per share of the bin, and prepares the bounds.
func (k *knapsack) order(free vector.Vector) {
	for i := range k.kinds {
		kd := &k.kinds[i]
		var share float64
		for _, t := range kd.need {
			share += float64(t.Amount) / float64(max(free[t.Resource], 1))
		}
		kd.density = kd.value / max(share, 1e-12)
		kd.onCards = slices.ContainsFunc(kd.need, func(t vector.Term) bool { return t.Pieces != nil })
		kd.partly = slices.ContainsFunc(
			kd.need,
			func(t vector.Term) bool { return t.Pieces != nil && len(t.Pieces.Parts) > 0 },
		)
	}
	slices.SortFunc(
		k.kinds,
		func(a, b kind) int { return cmp.Or(cmp.Compare(b.density, a.density), cmp.Compare(a.item, b.item)) },
	)
	width := len(free)
	k.densest = append(k.densest[:0], make([]float64, (len(k.kinds)+1)*width)...)
	for i := len(k.kinds) - 1; i >= 0; i-- {
		kd := &k.kinds[i]
		for r := range width {
			gain := math.Inf(1)
			if amount := amountOf(kd.need, r); amount > 0 {
				gain = kd.value / float64(amount)
			}
			k.densest[i*width+r] = max(gain, k.densest[(i+1)*width+r])
		}
	}
}

func amountOf(need []vector.Term, resource int) raydemand.Amount {
	for _, t := range need {
		if t.Resource == resource {
			return t.Amount
		}
	}
	return 0
}

// bound is an upper bound on the value of the kinds from i on, by each resource alone.
func (k *knapsack) bound(i int) float64 {
	least := math.Inf(1)
	for r, free := range k.free {
		if gain := k.densest[i*len(k.free)+r]; !math.IsInf(gain, 1) {
			least = min(least, float64(free)*gain)
		}
	}
	return least
}

func (k *knapsack) branch(i int, sum float64) {
	if sum > k.bestSum*(1+1e-12) {
		k.bestSum = sum
		copy(k.best, k.counts)
	}
	if i == len(k.kinds) || sum+k.bound(i) <= k.bestSum*(1+1e-9) {
		return
	}
	if k.nodes--; k.nodes < 0 {
		return
	}
	kd := &k.kinds[i]
	n := k.times(kd)
	before := k.before(i)
	k.take(kd, n)
	for ; ; n-- {
		k.counts[i] = n
		k.branch(i+1, sum+float64(float64(n)*kd.value))
		if k.looks--; n == 0 || k.nodes < 0 || k.looks < 0 {
			break
		}
		if before == nil {
			k.take(kd, -1)
			continue
		}
		copy(k.free, before)
		k.take(kd, n-1)
	}
	if before == nil {
		k.take(kd, -n)
	} else {
		copy(k.free, before)
	}
	k.counts[i] = 0
}

func (k *knapsack) times(kd *kind) int64 {
	if kd.onCards {
		return k.free.Times(kd.need, kd.limit)
	}
	return k.free.TimesAdded(kd.need, kd.limit)
}

func (k *knapsack) take(kd *kind, n int64) {
	if kd.onCards {
		k.free.Subtract(kd.need, n)
		return
	}
	k.free.SubtractAdded(kd.need, n)
}

// before copies what is free if the i-th kind asks for parts of cards, because subtracting parts cannot be undone. It
// returns nil for all other kinds.
func (k *knapsack) before(i int) vector.Vector {
	if !k.kinds[i].partly {
		return nil
	}
	for len(k.kept) <= i {
		k.kept = append(k.kept, nil)
	}
	k.kept[i] = append(k.kept[i][:0], k.free...)
	return k.kept[i]
}

// filling returns the best filling, by item.
func (k *knapsack) filling() (uses []portion) {
	for i, n := range k.best {
		if n > 0 {
			uses = append(uses, portion{k.kinds[i].item, n})
		}
	}
	return uses
}
