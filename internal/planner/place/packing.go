package place

import (
	"cmp"
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// waiting is the waiting part of a batch: the items with their indexes in it, and how many bundles of each wait.
type waiting struct {
	items []*Item
	left  []int64
	at    []int
}

// bin is a kind of node that may be filled, up to limit times. admits says for each item whether it may be put there.
// classes are the node classes of the kind, by number on the ledger.
type bin struct {
	free    Vector
	limit   int64
	admits  []bool
	classes []int
}

// filling is a chosen filling of a bin and how often it is used.
type filling struct {
	bin   int
	uses  []portion
	count int64
}

// portion is how many bundles of one item go onto a node.
type portion struct {
	item  int
	count int64
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
func (p *packer) pack() (best []filling, steps int) {
	var least int64 = -1
	for range attempts {
		fillings, left := p.attempt()
		if unserved := Sum(left); least < 0 || unserved < least {
			best, least = fillings, unserved
		}
		if least == 0 || p.steps > maxSteps {
			break
		}
		for i, n := range left {
			p.value[i] *= 1 + float64(n)/float64(p.left[i])
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
	// inSum: the bins have enough of every resource in total.
	inSum    bool
	steps    int
	knapsack knapsack
}

func newPacker(w *waiting, bins []bin) *packer {
	p := &packer{waiting: w, bins: bins, inSum: true}
	p.value, p.perRoom = make([]float64, len(w.items)), make([]float64, len(bins))
	width := len(bins[0].free)
	room, wanted := make([]float64, width), make([]float64, width)
	for b := range bins {
		for r, amount := range bins[b].free {
			room[r] += float64(amount) * float64(bins[b].limit)
		}
	}
	for i, it := range w.items {
		for _, t := range it.Need {
			wanted[t.Resource] += float64(t.Amount) * float64(w.left[i])
		}
	}
	for r := range wanted {
		p.inSum = p.inSum && wanted[r] <= room[r]
	}
	worth := func(r int) float64 { return wanted[r] / max(room[r]*room[r], 1) }
	for i, it := range w.items {
		for _, t := range it.Need {
			p.value[i] += float64(float64(t.Amount) * worth(t.Resource))
		}
	}
	for b := range bins {
		for r, amount := range bins[b].free {
			p.perRoom[b] += float64(float64(amount) * worth(r))
		}
	}
	return p
}

// attempt packs greedily: it repeats the filling with the most value for its room.
func (p *packer) attempt() (fillings []filling, left []int64) {
	left = slices.Clone(p.left)
	limit := make([]int64, len(p.bins))
	for b := range p.bins {
		limit[b] = p.bins[b].limit
	}
	for Sum(left) > 0 && p.steps <= 2*maxSteps {
		best, most := filling{bin: -1}, 0.0
		for b := range p.bins {
			if limit[b] == 0 {
				continue
			}
			uses, value := p.fullest(b, left)
			if ratio := value / max(p.perRoom[b], 1e-12); ratio > most {
				best, most = filling{bin: b, uses: uses, count: limit[b]}, ratio
			}
		}
		if best.bin < 0 {
			break
		}
		for _, u := range best.uses {
			best.count = min(best.count, left[u.item]/u.count)
		}
		for _, u := range best.uses {
			left[u.item] -= u.count * best.count
		}
		limit[best.bin] -= best.count
		fillings = append(fillings, best)
	}
	return fillings, left
}

// fullest fills one bin with the most valuable items.
func (p *packer) fullest(b int, left []int64) ([]portion, float64) {
	p.knapsack.kinds = p.knapsack.kinds[:0]
	for i, admitted := range p.bins[b].admits {
		if admitted && left[i] > 0 {
			p.knapsack.kinds = append(p.knapsack.kinds,
				kind{item: i, need: p.items[i].Need, limit: left[i], value: p.value[i]})
		}
	}
	value := p.knapsack.solve(p.bins[b].free, knapsackNodes)
	p.steps += knapsackNodes - max(p.knapsack.nodes, 0)
	return p.knapsack.filling(), value
}

// Limits of joint placing on existing nodes. Beyond them, greedy placing alone decides: demand with that many shapes
// fills its nodes well anyway.
const (
	maxFitItems   = 60
	maxFitClasses = 120
	maxFitBins    = 40
	// maxFitSteps limits the work of all packings of a plan together.
	maxFitSteps = 1_500_000
)

// retryable reports whether a batch that does not fit item by item is worth a second try: only counts connect its
// bundles, and it is small enough.
func (p *Search) retryable(l *Ledger, b *Batch) bool {
	return len(l.classes) > 0 && len(l.classes) <= maxFitClasses && b.turn == 0 && p.Steps <= maxFitSteps &&
		b.apart == 0 && b.avoid == 0 && b.join == 0 && len(b.part().items) <= maxFitItems
}

// part returns what of a batch is waiting.
func (b *Batch) part() waiting {
	var w waiting
	for i, n := range b.left {
		if n > 0 {
			w.items, w.left, w.at = append(w.items, b.items[i]), append(w.left, n), append(w.at, i)
		}
	}
	return w
}

// inBatch converts portions to the indexes of the batch and leaves out what is no longer waiting.
func inBatch(w *waiting, uses []portion, b *Batch, nodes int64) []portion {
	var portions []portion
	for _, u := range uses {
		if n := min(u.count, b.left[w.at[u.item]]/nodes); n > 0 {
			portions = append(portions, portion{item: w.at[u.item], count: n})
		}
	}
	return portions
}

// fitJointly places a batch on nodes that have joined or are on their way, unless that leaves as much unserved as
// greedy placement.
func (p *Search) fitJointly(l *Ledger, b *Batch, greedy []int64) bool {
	w := b.part()
	bins := p.existingBins(l, b, &w)
	if len(bins) == 0 || len(bins) > maxFitBins {
		return false
	}
	packer := newPacker(&w, bins)
	if !packer.inSum {
		return false
	}
	found, steps := packer.pack()
	p.Steps += steps
	l.carryOut(found, bins, b, &w)
	return p.neededFor(b, b.left) < p.neededFor(b, greedy)
}

// neededFor returns the scarce resources that waiting bundles ask for, as one number.
func (p *Search) neededFor(b *Batch, left []int64) (sum float64) {
	for i, n := range left {
		sum += float64(n) * p.Needed(b.items[i])
	}
	return sum
}

// carryOut takes the fillings from the node classes of their bins, starting with those that serve soonest.
func (l *Ledger) carryOut(fillings []filling, bins []bin, b *Batch, w *waiting) {
	perClass := make([][]filling, len(l.classes))
	room := make([]int64, len(l.classes))
	for i := range l.classes {
		room[i] = l.classes[i].count
	}
	for _, f := range fillings {
		for _, at := range bins[f.bin].classes {
			if n := min(f.count, room[at]); n > 0 {
				perClass[at] = append(perClass[at], filling{bin: f.bin, uses: f.uses, count: n})
				room[at] -= n
				f.count -= n
			}
		}
	}
	// Go from the last node class to the first, because taking from a class moves the classes after it.
	for i := len(perClass) - 1; i >= 0; i-- {
		at := i
		for _, f := range perClass[i] {
			if portions := inBatch(w, f.uses, b, f.count); len(portions) > 0 {
				l.take(at, b, f.count, portions)
				at++
			}
		}
	}
}

// existingBins lists the ledger's nodes as bins, each with its node classes. Nodes that differ only in whether they
// have joined share a bin, and the order does not depend on it, so the plan stays the same when some of them join.
func (p *Search) existingBins(l *Ledger, b *Batch, w *waiting) (bins []bin) {
	order := make([]int, 0, len(l.classes))
	for i := range l.classes {
		if b.admits(&l.classes[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return compareBins(&l.classes[x], &l.classes[y]) })
	for at, i := range order {
		class := &l.classes[i]
		if n := len(bins); at > 0 && n > 0 && compareBins(&l.classes[order[at-1]], class) == 0 &&
			slices.Contains(bins[n-1].classes, order[at-1]) {
			bins[n-1].classes = append(bins[n-1].classes, i)
			bins[n-1].limit += class.count
			continue
		}
		if admits, useful := admittedBy(w, class); useful {
			bins = append(bins, bin{free: class.free, limit: class.count, admits: admits, classes: []int{i}})
		}
		if len(bins) > maxFitBins {
			break
		}
	}
	return bins
}

// compareBins orders node classes by what could be placed on their nodes.
func compareBins(a, b *NodeClass) int {
	return cmp.Or(
		cmp.Compare(a.Shape.group, b.Shape.group),
		cmp.Compare(a.Shape.Labels, b.Shape.Labels),
		slices.Compare(a.free, b.free),
	)
}

// admittedBy returns which items fit on a node of a class, and reports whether there are any.
func admittedBy(w *waiting, class *NodeClass) (admits []bool, useful bool) {
	admits = make([]bool, len(w.items))
	for at, it := range w.items {
		if it.Rank[class.Shape.Labels] != NoMatch && class.free.Times(it.Need, 1) == 1 {
			admits[at], useful = true, true
		}
	}
	return admits, useful
}

// knapsack finds the most valuable filling of one bin by branch and bound, starting with the bundles that give the most
// value for their space. It stops after a number of nodes with the best filling found so far, which is at least as good
// as taking the bundles in that order.
type knapsack struct {
	kinds []kind
	free  Vector
	// densest[i*len(free)+r] is the highest value of a unit of resource r for kinds from i on.
	densest []float64
	nodes   int
	// looks is how many branches may still be visited, including those that a bound cuts off at once.
	looks   int
	counts  []int64
	best    []int64
	bestSum float64
	kept    []Vector
}

// kind is one item in the knapsack.
type kind struct {
	item    int
	need    []Term
	limit   int64
	value   float64
	density float64
	partly  bool // asks for parts of cards
}

// branchesPerNode limits the branches that are cut off at once per branch that is followed. A bundle that fits a
// million times has a million such branches.
const branchesPerNode = 64

// solve fills what is free within a number of branches, and returns the value of the best filling.
func (k *knapsack) solve(free Vector, nodes int) float64 {
	k.order(free)
	k.free = append(k.free[:0], free...)
	k.counts = append(k.counts[:0], make([]int64, len(k.kinds))...)
	k.best = append(k.best[:0], make([]int64, len(k.kinds))...)
	k.nodes, k.looks, k.bestSum = nodes, branchesPerNode*nodes, 0
	k.branch(0, 0)
	return k.bestSum
}

// order sorts the kinds by value per share of the bin, and prepares the bounds.
func (k *knapsack) order(free Vector) {
	for i := range k.kinds {
		kd := &k.kinds[i]
		var share float64
		for _, t := range kd.need {
			share += float64(t.Amount) / float64(max(free[t.Resource], 1))
		}
		kd.density = kd.value / max(share, 1e-12)
		kd.partly = slices.ContainsFunc(
			kd.need,
			func(t Term) bool { return t.Pieces != nil && len(t.Pieces.parts) > 0 },
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

func amountOf(need []Term, resource int) raydemand.Amount {
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
	n := k.free.Times(kd.need, kd.limit)
	before := k.before(i)
	k.free.subtract(kd.need, n)
	for ; ; n-- {
		k.counts[i] = n
		k.branch(i+1, sum+float64(float64(n)*kd.value))
		if k.looks--; n == 0 || k.nodes < 0 || k.looks < 0 {
			break
		}
		if before == nil {
			k.free.subtract(kd.need, -1)
			continue
		}
		copy(k.free, before)
		k.free.subtract(kd.need, n-1)
	}
	if before == nil {
		k.free.subtract(kd.need, -n)
	} else {
		copy(k.free, before)
	}
	k.counts[i] = 0
}

// before copies what is free if the i-th kind asks for parts of cards, because subtracting parts cannot be undone. It
// returns nil for all other kinds.
func (k *knapsack) before(i int) Vector {
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
