package placing

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

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
func (p *Placer) retryable(l *Ledger, b *Batch) bool {
	return len(l.Classes) > 0 && len(l.Classes) <= maxFitClasses && b.turn == 0 && p.Steps <= maxFitSteps &&
		b.apart == 0 && b.avoid == 0 && b.join == 0 && len(b.part().Items) <= maxFitItems
}

// part returns what of a batch is waiting.
func (b *Batch) part() waiting {
	var w waiting
	for i, n := range b.Left {
		if n > 0 {
			w.Items, w.Left, w.At = append(w.Items, b.items[i]), append(w.Left, n), append(w.At, i)
		}
	}
	return w
}

// inBatch converts portions to the indexes of the batch and leaves out what is no longer waiting.
func inBatch(w *waiting, uses []portion, b *Batch, nodes int64) []portion {
	var portions []portion
	for _, u := range uses {
		if n := min(u.Count, b.Left[w.At[u.Item]]/nodes); n > 0 {
			portions = append(portions, portion{Item: w.At[u.Item], Count: n})
		}
	}
	return portions
}

// fitJointly places a batch on nodes that have joined or are on their way, unless that leaves as much unserved as
// greedy placement.
func (p *Placer) fitJointly(l *Ledger, b *Batch, greedy []int64) bool {
	w := b.part()
	classes, bins := p.existingBins(l, b, &w)
	if len(bins) == 0 || len(bins) > maxFitBins || !fitsInSum(&w, bins) {
		return false
	}
	found, steps := pack(&w, bins)
	p.Steps += steps
	l.carryOut(found, classes, b, &w)
	return p.neededFor(b, b.Left) < p.neededFor(b, greedy)
}

// neededFor returns the scarce resources that waiting bundles ask for, as one number.
func (p *Placer) neededFor(b *Batch, left []int64) (sum float64) {
	for i, n := range left {
		sum += float64(n) * p.Needed(b.items[i])
	}
	return sum
}

// carryOut takes the fillings from the node classes of their bins, starting with those that serve soonest.
func (l *Ledger) carryOut(fillings []filling, classes [][]int, b *Batch, w *waiting) {
	perClass := make([][]filling, len(l.Classes))
	room := make([]int64, len(l.Classes))
	for i := range l.Classes {
		room[i] = l.Classes[i].Count
	}
	for _, f := range fillings {
		for _, at := range classes[f.Bin] {
			if n := min(f.Count, room[at]); n > 0 {
				perClass[at] = append(perClass[at], filling{Bin: f.Bin, Uses: f.Uses, Count: n})
				room[at] -= n
				f.Count -= n
			}
		}
	}
	// Go from the last node class to the first, because taking from a class moves the classes after it.
	for i := len(perClass) - 1; i >= 0; i-- {
		at := i
		for _, f := range perClass[i] {
			if portions := inBatch(w, f.Uses, b, f.Count); len(portions) > 0 {
				l.take(at, b, f.Count, portions)
				at++
			}
		}
	}
}

// existingBins lists the ledger's nodes as bins, each with its node classes. Nodes that differ only in whether they
// have joined share a bin, and the order does not depend on it, so the plan stays the same when some of them join.
func (p *Placer) existingBins(l *Ledger, b *Batch, w *waiting) (classes [][]int, bins []bin) {
	order := make([]int, 0, len(l.Classes))
	for i := range l.Classes {
		if b.admits(&l.Classes[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return compareBins(&l.Classes[x], &l.Classes[y]) })
	for at, i := range order {
		class := &l.Classes[i]
		if n := len(bins); at > 0 && n > 0 && compareBins(&l.Classes[order[at-1]], class) == 0 &&
			slices.Contains(classes[n-1], order[at-1]) {
			classes[n-1] = append(classes[n-1], i)
			bins[n-1].Limit += class.Count
			continue
		}
		if admits, useful := admittedBy(w, class); useful {
			classes = append(classes, []int{i})
			bins = append(bins, bin{
				Free: class.Free, Limit: class.Count, Admits: admits,
			})
		}
		if len(bins) > maxFitBins {
			break
		}
	}
	return classes, bins
}

// compareBins orders node classes by what could be placed on their nodes.
func compareBins(a, b *NodeClass) int {
	return cmp.Or(
		cmp.Compare(a.Shape.Group, b.Shape.Group),
		cmp.Compare(a.Shape.Labels, b.Shape.Labels),
		slices.Compare(a.Free, b.Free),
	)
}

// admittedBy returns which items fit on a node of a class, and reports whether there are any.
func admittedBy(w *waiting, class *NodeClass) (admits []bool, useful bool) {
	admits = make([]bool, len(w.Items))
	for at, it := range w.Items {
		if it.Rank[class.Shape.Labels] != vector.NoMatch && class.Free.Times(it.Need, 1) == 1 {
			admits[at], useful = true, true
		}
	}
	return admits, useful
}

// fitsInSum reports whether the bins have enough of every resource in total.
func fitsInSum(w *waiting, bins []bin) bool {
	width := len(bins[0].Free)
	room := make([]float64, width)
	for i := range bins {
		for r, amount := range bins[i].Free {
			room[r] += float64(amount) * float64(bins[i].Limit)
		}
	}
	for at, it := range w.Items {
		for _, t := range it.Need {
			room[t.Resource] -= float64(t.Amount) * float64(w.Left[at])
		}
	}
	for _, left := range room {
		if left < 0 {
			return false
		}
	}
	return true
}
