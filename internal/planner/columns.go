package planner

// Limits of what is answered jointly. Beyond them the greedy strategies answer alone: a program grows with the square
// of its rows, and demand of so many shapes fills its nodes well anyway.
const (
	maxProgramItems = 60
	maxProgramBins  = 120
	maxFitBins      = 40
	launchDives     = 4
	fitDives        = 2
	// maxPlanSteps bounds all programs of a plan together.
	maxPlanSteps = 1_500_000
)

// joinable reports whether a batch can be answered as one program: nothing in it but counts ties bundles together.
func (b *batch) joinable() bool {
	return !b.spread && b.avoid == 0 && b.join == 0 && waiting(b.left) <= maxProgramItems
}

func waiting(left []int64) (kinds int) {
	for _, n := range left {
		if n > 0 {
			kinds++
		}
	}
	return kinds
}

// part is what of a batch waits: the items with their places in it.
type part struct {
	items []*item
	left  []int64
	at    []int
}

func (b *batch) part() part {
	var w part
	for i, n := range b.left {
		if n > 0 {
			w.items, w.left, w.at = append(w.items, b.items[i]), append(w.left, n), append(w.at, i)
		}
	}
	return w
}

// inBatch numbers portions by their place in the batch, and leaves out what no longer waits.
func (w *part) inBatch(uses []portion, b *batch, hosts int64) []portion {
	var portions []portion
	for _, u := range uses {
		if n := min(u.count, b.left[w.at[u.item]]/hosts); n > 0 {
			portions = append(portions, portion{w.at[u.item], n})
		}
	}
	return portions
}

// launchJointly launches what the covering program over all open groups finds.
func (p *planning) launchJointly(l *ledger, b *batch) {
	if !b.joinable() || b.served() || p.steps > maxPlanSteps {
		return
	}
	w := b.part()
	groups, bins := p.openBins(l, b, &w)
	if len(bins) == 0 || len(bins) > maxProgramBins {
		return
	}
	c := newCovering(w.items, w.left, bins, l.spare)
	found := c.best(launchDives)
	p.steps += c.steps
	for _, f := range found.fillings {
		g := &p.groups[groups[f.bin]]
		n := min(f.count, min(l.room[g.shape.group], l.spare)/g.hosts)
		portions := w.inBatch(f.uses, b, g.hosts*n)
		if n == 0 || len(portions) == 0 {
			continue
		}
		lot := l.launch(g, n*g.hosts)
		l.lots = append(l.lots, lot)
		l.take(len(l.lots)-1, b, lot.count, portions)
	}
}

// openBins lists the groups that may launch, as bins, with what each may be launched for.
func (p *planning) openBins(l *ledger, b *batch, w *part) (groups []int, bins []bin) {
	for i := range p.groups {
		g := &p.groups[i]
		if replicas := min(l.room[i], l.spare) / g.hosts; replicas > 0 && b.admitsLabels(g.shape.labels) {
			groups = append(groups, i)
			bins = append(bins, bin{free: g.shape.total, cost: p.yard.cost[i], hosts: g.hosts, limit: replicas})
		}
	}
	for i := range bins {
		bins[i].admits = make([]admission, len(w.items))
	}
	for at, it := range w.items {
		p.admit(groups, bins, at, it)
	}
	return groups, bins
}

// claimOn says how well a group stands for an item, smaller is better: first the item's own preference, then whether
// an accelerator would be tied up, then the group's class.
type claimOn struct {
	rank, tied, class int
}

// admit decides which groups are launched for an item: those that stand best for it. The others that its first
// matching selector allows may carry it when they are launched for something else.
func (p *planning) admit(groups []int, bins []bin, at int, it *item) {
	best := claimOn{rank: len(it.request.Selectors) + 1}
	stands := make([]claimOn, len(groups))
	for k, i := range groups {
		g := &p.groups[i]
		stands[k] = claimOn{rank: noMatch}
		if !it.suits(g.shape) {
			continue
		}
		stands[k] = claimOn{rank: it.rank[g.shape.labels], class: p.yard.class[i]}
		if g.shape.accelerated && !it.accelerator && !p.policy.GPUForCPU {
			stands[k].tied = 1
		}
		if stands[k].before(best) {
			best = stands[k]
		}
	}
	for k, s := range stands {
		switch {
		case s == best && s.rank != noMatch:
			bins[k].admits[at] = native
		case s.rank == best.rank:
			bins[k].admits[at] = rides
		}
	}
}

func (c claimOn) before(other claimOn) bool {
	switch {
	case c.rank != other.rank:
		return c.rank < other.rank
	case c.tied != other.tied:
		return c.tied < other.tied
	}
	return c.class < other.class
}

// fitJointly puts a batch on the nodes that are there or on their way, unless that leaves as much as greedy placing
// did. Costs only steer it: fillings that are tight for what a node costs leave room elsewhere.
func (p *planning) fitJointly(l *ledger, b *batch, greedy []int64) bool {
	w := b.part()
	lots, bins := p.standingBins(l, b, &w)
	if len(bins) == 0 || len(bins) > maxFitBins || !fitsInSum(&w, bins) {
		return false
	}
	c := newCovering(w.items, w.left, bins, maxCount)
	found, possible := c.fit(fitDives)
	p.steps += c.steps
	if !possible {
		return false
	}
	perLot := make([][]packed, len(lots))
	for _, f := range found.fillings {
		perLot[f.bin] = append(perLot[f.bin], f)
	}
	// From the last lot to the first: taking from a lot moves those behind it.
	for k := len(lots) - 1; k >= 0; k-- {
		at := lots[k]
		for _, f := range perLot[k] {
			if portions := w.inBatch(f.uses, b, f.count); len(portions) > 0 {
				l.take(at, b, f.count, portions)
				at++
			}
		}
	}
	return p.neededFor(b, b.left) < p.neededFor(b, greedy)
}

// neededFor is what bundles that wait ask for that is scarce, as one number.
func (p *planning) neededFor(b *batch, left []int64) (sum float64) {
	for i, n := range left {
		sum += float64(n) * p.needed(b.items[i])
	}
	return sum
}

// standingBins lists what the ledger holds, as bins.
func (p *planning) standingBins(l *ledger, b *batch, w *part) (lots []int, bins []bin) {
	for i := range l.lots {
		lot := &l.lots[i]
		if !b.admits(lot) {
			continue
		}
		one := bin{free: lot.free, cost: p.costOf(lot), hosts: 1, limit: lot.count, there: true, admits: make([]admission, len(w.items))}
		useful := false
		for at, it := range w.items {
			if it.rank[lot.shape.labels] != noMatch && lot.free.times(it.need, 1) == 1 {
				one.admits[at], useful = native, true
			}
		}
		if useful {
			lots, bins = append(lots, i), append(bins, one)
		}
		if len(bins) > maxFitBins {
			break
		}
	}
	return lots, bins
}

// costOf is what a node on the ledger would cost to launch again, for the share of it that is free.
func (p *planning) costOf(lot *lot) float64 {
	free := p.holding(lot.free)
	if g := lot.shape.group; g >= 0 {
		return p.yard.cost[g] / float64(p.groups[g].hosts) * free / max(p.holding(lot.shape.total), 1e-9)
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
		for _, t := range it.need {
			room[t.resource] -= float64(t.amount) * float64(w.left[at])
		}
	}
	for _, left := range room {
		if left < 0 {
			return false
		}
	}
	return true
}
