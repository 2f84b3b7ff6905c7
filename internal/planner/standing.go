package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// fitJointly puts a batch on the nodes that are there or on their way, unless that leaves as much as greedy placing
// did. Costs only steer it: fillings that are tight for what a node costs leave room elsewhere.
func (p *Placer) fitJointly(l *ledger, b *batch, greedy []int64) bool {
	w := b.part()
	lots, bins := p.standingBins(l, b, &w)
	if len(bins) == 0 || len(bins) > maxFitBins || !fitsInSum(&w, bins) {
		return false
	}
	found, possible, steps := fitInto(&w, bins)
	p.steps += steps
	if !possible {
		return false
	}
	l.carryOut(found.fillings, lots, b, &w)
	return p.neededFor(b, b.left) < p.neededFor(b, greedy)
}

// neededFor is what bundles that wait ask for that is scarce, as one number.
func (p *Placer) neededFor(b *batch, left []int64) (sum float64) {
	for i, n := range left {
		sum += float64(n) * p.Needed(b.items[i])
	}
	return sum
}

// carryOut takes the fillings from the lots of their bins, from those that serve soonest first.
func (l *ledger) carryOut(fillings []packed, lots [][]int, b *batch, w *part) {
	perLot := make([][]packed, len(l.lots))
	room := make([]int64, len(l.lots))
	for i := range l.lots {
		room[i] = l.lots[i].count
	}
	for _, f := range fillings {
		for _, at := range lots[f.bin] {
			if n := min(f.count, room[at]); n > 0 {
				perLot[at] = append(perLot[at], packed{f.bin, f.uses, n})
				room[at] -= n
				f.count -= n
			}
		}
	}
	// From the last lot to the first: taking from a lot moves those behind it.
	for i := len(perLot) - 1; i >= 0; i-- {
		at := i
		for _, f := range perLot[i] {
			if portions := inBatch(w, f.uses, b, f.count); len(portions) > 0 {
				l.take(at, b, f.count, portions)
				at++
			}
		}
	}
}

// standingBins lists what the ledger holds, as bins, each with its lots. Nodes that differ in nothing but whether they
// have joined yet are one bin, and the order does not depend on it: what was found while they were on their way is
// found again when some have come up.
func (p *Placer) standingBins(l *ledger, b *batch, w *part) (lots [][]int, bins []bin) {
	order := make([]int, 0, len(l.lots))
	for i := range l.lots {
		if b.admits(&l.lots[i]) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return compareBins(&l.lots[x], &l.lots[y]) })
	for at, i := range order {
		lot := &l.lots[i]
		if n := len(bins); at > 0 && n > 0 && compareBins(&l.lots[order[at-1]], lot) == 0 && slices.Contains(lots[n-1], order[at-1]) {
			lots[n-1] = append(lots[n-1], i)
			bins[n-1].limit += lot.count
			continue
		}
		if admits, useful := admittedBy(w, lot); useful {
			lots = append(lots, []int{i})
			bins = append(bins, bin{free: lot.free, cost: p.costOf(lot), hosts: 1, limit: lot.count, there: true, admits: admits})
		}
		if len(bins) > maxFitBins {
			break
		}
	}
	return lots, bins
}

// compareBins orders lots by what could be put on their nodes.
func compareBins(a, b *lot) int {
	return cmp.Or(
		cmp.Compare(a.shape.Group, b.shape.Group),
		cmp.Compare(a.shape.Labels, b.shape.Labels),
		slices.Compare(a.free, b.free),
	)
}

// admittedBy says which items a node of a lot could take, and whether there are any.
func admittedBy(w *part, lot *lot) (admits []admission, useful bool) {
	admits = make([]admission, len(w.items))
	for at, it := range w.items {
		if it.Rank[lot.shape.Labels] != vector.NoMatch && lot.free.Times(it.Need, 1) == 1 {
			admits[at], useful = native, true
		}
	}
	return admits, useful
}

// costOf is what a node on the ledger would cost to launch again, for the share of it that is free.
func (p *Placer) costOf(lot *lot) float64 {
	free := p.Holding(lot.free)
	if g := lot.shape.Group; g >= 0 {
		return p.yard.cost[g] / float64(p.groups[g].hosts) * free / max(p.Holding(lot.shape.Total), 1e-9)
	}
	return free
}

// fitsInSum reports whether the bins have enough of every resource, added up.
func fitsInSum(w *part, bins []bin) bool {
	width := len(bins[0].free)
	room := make([]float64, width)
	for i := range bins {
		for r, amount := range bins[i].free {
			room[r] += float64(amount) * float64(bins[i].limit)
		}
	}
	for at, it := range w.items {
		for _, t := range it.Need {
			room[t.Resource] -= float64(t.Amount) * float64(w.left[at])
		}
	}
	for _, left := range room {
		if left < 0 {
			return false
		}
	}
	return true
}
