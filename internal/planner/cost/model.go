// Package cost rates launches, so that plans can be compared: by price if all groups that could serve the same work
// have one, else by the scarce resources of a replica. It must not know where demand is placed.
package cost

import (
	"cmp"
	"iter"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Model rates launches, so that plans can be compared.
type Model struct {
	Substitutes
	// PerReplica is the cost of one replica of each group: its price if the group and all of its substitutes have one,
	// else its scarce resources.
	PerReplica []float64
	// Tier is each group's rank by preference; groups of tier 0 launch first. Prices count only within a tier.
	Tier  []int
	tiers int
	// hosts is the number of pods in one replica, by group.
	hosts []int64
}

// rater computes the costs of launches.
type rater struct{ *fleet.Fleet }

// New rates the groups of a fleet for all items of the demand.
func New(r *fleet.Fleet, items iter.Seq[*vector.Item]) Model {
	p := rater{r}
	y := Model{
		Substitutes: p.newSubstitutes(items),
		Tier:        make([]int, len(p.Groups)),
		hosts:       make([]int64, len(p.Groups)),
	}
	y.PerReplica = p.costs(&y.Substitutes)
	preferences := make([]fleet.Preference, len(p.Groups))
	for i := range p.Groups {
		preferences[i] = p.Groups[i].Preference()
		y.hosts[i] = p.Groups[i].Hosts
	}
	order := slices.Clone(preferences)
	slices.SortFunc(order, func(a, b fleet.Preference) int { return b.Compare(a) })
	order = slices.Compact(order)
	for i, preference := range preferences {
		y.Tier[i] = slices.Index(order, preference)
	}
	y.tiers = len(order)
	return y
}

// LaunchCost is the cost of launches by tier, the last tier first, because a plan that needs less of a worse tier is
// better; and the number of pods.
type LaunchCost struct {
	Costs []float64
	pods  int64
}

// LaunchCost adds up the cost of launches.
func (y *Model) LaunchCost(launched []int64) LaunchCost {
	b := LaunchCost{Costs: make([]float64, y.tiers)}
	for i, n := range launched {
		b.Costs[y.tiers-1-y.Tier[i]] += y.PerReplica[i] * float64(n/y.hosts[i])
		b.pods += n
	}
	return b
}

// Compare orders costs, the lower first: tier by tier, then by the number of pods.
func (b *LaunchCost) Compare(other *LaunchCost) (order int) {
	for i := 0; i < len(b.Costs) && order == 0; i++ {
		order = CompareNearly(b.Costs[i], other.Costs[i])
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
