// Package cost says what launching costs, so that two plans can be compared: by price where all groups that could serve
// the same work have one, else by what a replica holds that is scarce. It must not know where demand is placed.
package cost

import (
	"cmp"
	"iter"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Model says what launching costs, so that plans can be compared.
type Model struct {
	Substitutes
	// PerReplica is what one replica of each group costs: its price where it and all its substitutes have one, else what
	// it holds that is scarce.
	PerReplica []float64
	// Tier is the rank of each group by its own preference, 0 for those to be launched first. Price counts only within a
	// class.
	Tier  []int
	tiers int
	// hosts counts the pods of one replica, by group.
	hosts []int64
}

// rater finds what launching costs.
type rater struct {
	*fleet.Fleet
	gpuForCPU bool
}

// New rates the groups of a fleet for all items that are asked for.
func New(r *fleet.Fleet, gpuForCPU bool, items iter.Seq[*vector.Item]) Model {
	p := rater{r, gpuForCPU}
	y := Model{Substitutes: p.newSubstitutes(items), Tier: make([]int, len(p.Groups)), hosts: make([]int64, len(p.Groups))}
	y.PerReplica = p.costs(&y.Substitutes)
	standings := make([]fleet.Preference, len(p.Groups))
	for i := range p.Groups {
		standings[i] = p.Groups[i].Preference()
		y.hosts[i] = p.Groups[i].Hosts
	}
	order := slices.Clone(standings)
	slices.SortFunc(order, func(a, b fleet.Preference) int { return b.Compare(a) })
	order = slices.Compact(order)
	for i, s := range standings {
		y.Tier[i] = slices.Index(order, s)
	}
	y.tiers = len(order)
	return y
}

// LaunchCost is what launches cost by class of groups, the last class first, since what a better class can do, no worse
// class does; and how many pods they are.
type LaunchCost struct {
	Costs []float64
	pods  int64
}

// LaunchCost adds up what launches cost.
func (y *Model) LaunchCost(launched []int64) LaunchCost {
	b := LaunchCost{Costs: make([]float64, y.tiers)}
	for i, n := range launched {
		b.Costs[y.tiers-1-y.Tier[i]] += y.PerReplica[i] * float64(n/y.hosts[i])
		b.pods += n
	}
	return b
}

// Compare orders bills, the cheaper first: class by class, then by the number of pods.
func (b *LaunchCost) Compare(other *LaunchCost) (order int) {
	for i := 0; i < len(b.Costs) && order == 0; i++ {
		order = CompareNearly(b.Costs[i], other.Costs[i])
	}
	return cmp.Or(order, cmp.Compare(b.pods, other.pods))
}

// ByPrice reports whether it is a group's price that counts.
func (y *Model) ByPrice(group int) bool { return y.priced[y.Of[group]] }

// CompareNearly takes sums for equal that differ by rounding only.
func CompareNearly(a, b float64) int {
	if nearly := 1e-9 * max(a, b); a-b <= nearly && b-a <= nearly {
		return 0
	}
	return cmp.Compare(a, b)
}
