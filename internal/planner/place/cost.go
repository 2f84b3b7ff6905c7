package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Model rates launches, so that plans can be compared.
//
// Substitutes are groups that could serve the same work, directly or through another substitute. Prices count within a
// set of substitutes if all of its groups have one. A group that no waiting demand needs is alone in its set.
type Model struct {
	// Of is each group's set, identified by its first group.
	Of []int
	// priced reports, for the first group of a set, whether all groups of the set have a price.
	priced []bool
	// PerReplica is the cost of one replica of each group: its price if the group and all of its substitutes have one,
	// else its scarce resources.
	PerReplica []float64
	// tier is each group's rank by preference; groups of tier 0 launch first. Prices count only within a tier.
	tier  []int
	tiers int
	// hosts is the number of pods in one replica, by group.
	hosts []int64
}

// newCosts rates the groups of a fleet for all items of the demand.
func newCosts(p *Fleet, items []*Item) Model {
	y := Model{
		Of: make([]int, len(p.Groups)), priced: make([]bool, len(p.Groups)),
		tier: make([]int, len(p.Groups)), hosts: make([]int64, len(p.Groups)),
	}
	y.substitute(p, items)
	y.PerReplica = p.costs(&y)
	preferences := make([]Preference, len(p.Groups))
	for i := range p.Groups {
		preferences[i] = p.Groups[i].Preference()
		y.hosts[i] = p.Groups[i].Hosts
	}
	order := slices.Clone(preferences)
	slices.SortFunc(order, func(a, b Preference) int { return b.compare(a) })
	order = slices.Compact(order)
	for i, preference := range preferences {
		y.tier[i] = slices.Index(order, preference)
	}
	y.tiers = len(order)
	return y
}

// launchCost is the cost of launches by tier, the last tier first, because a plan that needs less of a worse tier is
// better; and the number of pods.
type launchCost struct {
	costs []float64
	pods  int64
}

// launchCost adds up the cost of launches.
func (y *Model) launchCost(launched []int64) launchCost {
	b := launchCost{costs: make([]float64, y.tiers)}
	for i, n := range launched {
		b.costs[y.tiers-1-y.tier[i]] += y.PerReplica[i] * float64(n/y.hosts[i])
		b.pods += n
	}
	return b
}

// compare orders costs, the lower first: tier by tier, then by the number of pods.
func (b *launchCost) compare(other *launchCost) (order int) {
	for i := 0; i < len(b.costs) && order == 0; i++ {
		order = CompareNearly(b.costs[i], other.costs[i])
	}
	return cmp.Or(order, cmp.Compare(b.pods, other.pods))
}

// ByPrice reports whether a group is rated by its price.
func (y *Model) ByPrice(group int) bool { return y.priced[y.Of[group]] }

// CompareNearly compares sums and ignores rounding errors.
func CompareNearly(a, b float64) int {
	if nearly := 1e-9 * max(a, b); a-b <= nearly && b-a <= nearly {
		return 0
	}
	return cmp.Compare(a, b)
}

// If demand has slice requirements, then of two plans with equal cost the better one uses less GPU memory, then less
// compute. It is a bias of the costs, too small to outweigh a price, so every comparison of costs takes it into
// account.
const (
	memoryBias  = 1e-5
	computeBias = 1e-6
)

// gpusOf returns the number of GPUs in one replica of a group.
func (r *Fleet) gpusOf(i int) float64 {
	g := &r.Groups[i]
	return g.Resources.Has(raydemand.GPU).Float() * float64(g.Hosts)
}

// sliceDiscount is how much less one replica is worth because its GPUs are slices. Without prices, a GPU is worth its
// share of the largest GPU's memory: a seventh of a card costs less than a card.
func (r *Fleet) sliceDiscount(i int) float64 {
	if !r.Sliced {
		return 0
	}
	return acceleratorWorth * r.gpusOf(i) * (1 - r.MemoryShare(r.Groups[i].Slice))
}

// addSliceBias adds the slice bias to the costs of groups, as a part of the lowest cost. An unknown value counts as the
// maximum.
func (r *Fleet) addSliceBias(cost []float64) {
	scale := 0.0
	for _, c := range cost {
		if c > 0 && (scale == 0 || c < scale) {
			scale = c
		}
	}
	for i := range r.Groups {
		s := cmp.Or(r.Groups[i].Slice, &model.Slice{})
		bias := memoryBias*r.MemoryShare(s) + computeBias*model.AmountOr(s.ComputeFraction, 1)
		cost[i] += cmp.Or(scale, 1) * bias * r.gpusOf(i)
	}
}

// substitute finds the groups that could be launched for the same work, if some have a price and others do not.
func (y *Model) substitute(p *Fleet, items []*Item) {
	priced := 0
	for i := range p.Groups {
		y.Of[i], y.priced[i] = i, p.Groups[i].Price != nil
		if y.priced[i] {
			priced++
		}
	}
	if priced == 0 || priced == len(p.Groups) {
		return
	}
	for _, it := range items {
		y.join(p.fitFor(it))
	}
	for i := range y.Of {
		y.priced[y.Of[i]] = y.priced[y.Of[i]] && y.priced[i]
	}
}

// fitFor lists the open groups that could be launched for an item. Work without accelerators does not use groups with
// accelerators if another group can serve it.
func (r *Fleet) fitFor(it *Item) []int {
	var plain, accelerated []int
	for i := range r.Groups {
		g := &r.Groups[i]
		switch {
		case g.Blocked != "" || g.MaxPods < g.Hosts || !it.Suits(g.Shape):
		case g.Shape.Accelerated:
			accelerated = append(accelerated, i)
		default:
			plain = append(plain, i)
		}
	}
	if len(plain) > 0 && !it.accelerator {
		return plain
	}
	return append(plain, accelerated...)
}

// join makes the sets of some groups one.
func (y *Model) join(groups []int) {
	for _, i := range groups {
		a, b := y.Of[groups[0]], y.Of[i]
		for k := range y.Of {
			if a != b && y.Of[k] == max(a, b) {
				y.Of[k] = min(a, b)
			}
		}
	}
}

// costs returns the cost of one replica of each group. Groups without a price are rated by their scarce resources at
// the lowest price of any group, so that a plan can compare different kinds of work.
func (r *Fleet) costs(y *Model) []float64 {
	cost := make([]float64, len(r.Groups))
	rate := 0.0
	for i := range r.Groups {
		g := &r.Groups[i]
		cost[i] = r.holding(g.Shape.Total)*float64(g.Hosts) - r.sliceDiscount(i)
		if !y.priced[y.Of[i]] {
			continue
		}
		price := *g.Price * float64(g.Hosts)
		if each := price / max(cost[i], 1e-9); each > 0 && (rate == 0 || each < rate) {
			rate = each
		}
		cost[i] = price
	}
	for i := range cost {
		if rate > 0 && !y.priced[y.Of[i]] {
			cost[i] *= rate
		}
	}
	if r.Sliced {
		r.addSliceBias(cost)
	}
	return cost
}
