package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/packing"
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
	found, possible, steps := packing.Fit(&w, bins)
	p.steps += steps
	if !possible {
		return false
	}
	l.carryOut(found.Fillings, lots, b, &w)
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
func (l *ledger) carryOut(fillings []packing.Filling, lots [][]int, b *batch, w *packing.Demand) {
	perLot := make([][]packing.Filling, len(l.lots))
	room := make([]int64, len(l.lots))
	for i := range l.lots {
		room[i] = l.lots[i].count
	}
	for _, f := range fillings {
		for _, at := range lots[f.Bin] {
			if n := min(f.Count, room[at]); n > 0 {
				perLot[at] = append(perLot[at], packing.Filling{Bin: f.Bin, Uses: f.Uses, Count: n})
				room[at] -= n
				f.Count -= n
			}
		}
	}
	// From the last lot to the first: taking from a lot moves those behind it.
	for i := len(perLot) - 1; i >= 0; i-- {
		at := i
		for _, f := range perLot[i] {
			if portions := inBatch(w, f.Uses, b, f.Count); len(portions) > 0 {
				l.take(at, b, f.Count, portions)
				at++
			}
		}
	}
}

// standingBins lists what the ledger holds, as bins, each with its lots. Nodes that differ in nothing but whether they
// have joined yet are one bin, and the order does not depend on it: what was found while they were on their way is
// found again when some have come up.
func (p *Placer) standingBins(l *ledger, b *batch, w *packing.Demand) (lots [][]int, bins []packing.Bin) {
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
			bins[n-1].Limit += lot.count
			continue
		}
		if admits, useful := admittedBy(w, lot); useful {
			lots = append(lots, []int{i})
			bins = append(bins, packing.Bin{Free: lot.free, Cost: p.costOf(lot), Hosts: 1, Limit: lot.count, Existing: true, Admits: admits})
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
func admittedBy(w *packing.Demand, lot *lot) (admits []packing.Admission, useful bool) {
	admits = make([]packing.Admission, len(w.Items))
	for at, it := range w.Items {
		if it.Rank[lot.shape.Labels] != vector.NoMatch && lot.free.Times(it.Need, 1) == 1 {
			admits[at], useful = packing.Primary, true
		}
	}
	return admits, useful
}

// costOf is what a node on the ledger would cost to launch again, for the share of it that is free.
func (p *Placer) costOf(lot *lot) float64 {
	free := p.Holding(lot.free)
	if g := lot.shape.Group; g >= 0 {
		return p.yard.PerReplica[g] / float64(p.Groups[g].Hosts) * free / max(p.Holding(lot.shape.Total), 1e-9)
	}
	return free
}

// fitsInSum reports whether the bins have enough of every resource, added up.
func fitsInSum(w *packing.Demand, bins []packing.Bin) bool {
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
