package planner

import (
	"cmp"
	"iter"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// yardstick says what launching costs, so that plans can be compared.
type yardstick struct {
	rivals
	// cost is what one replica of each group costs: its price where it and all its rivals have one, else what it holds that is
	// scarce.
	cost []float64
	// class is the rank of each group by its own standing, 0 for those to be launched first. Price counts only within
	// a class.
	class   []int
	classes int
	// hosts counts the pods of one replica, by group.
	hosts []int64
}

// rater finds what launching costs.
type rater struct {
	*fleet.Fleet
	gpuForCPU bool
}

// newYardstick rates the groups of a fleet for all items that are asked for.
func newYardstick(r *fleet.Fleet, gpuForCPU bool, items iter.Seq[*vector.Item]) yardstick {
	p := rater{r, gpuForCPU}
	y := yardstick{rivals: p.newRivals(items), class: make([]int, len(p.Groups)), hosts: make([]int64, len(p.Groups))}
	y.cost = p.costs(&y.rivals)
	standings := make([]fleet.Preference, len(p.Groups))
	for i := range p.Groups {
		standings[i] = p.Groups[i].Preference()
		y.hosts[i] = p.Groups[i].Hosts
	}
	order := slices.Clone(standings)
	slices.SortFunc(order, func(a, b fleet.Preference) int { return b.Compare(a) })
	order = slices.Compact(order)
	for i, s := range standings {
		y.class[i] = slices.Index(order, s)
	}
	y.classes = len(order)
	return y
}

// verdict says how good a plan is: what it leaves unserved, then what it costs by class of groups, then how
// many pods it takes, then how many idle nodes it keeps from leaving. Smaller is better, compared in this order.
type verdict struct {
	claims, gangs int
	unserved      float64
	bill
	// kept counts the nodes that stay beyond their idle timeout because something is placed on them.
	kept int
}

func (p *planning) verdict(given []int64, out *outcome) verdict {
	v := verdict{claims: len(out.claims), gangs: len(out.gangs), kept: out.kept, bill: p.yard.bill(given)}
	for i, n := range out.unserved {
		v.unserved += float64(n) * p.Needed(p.requests[i])
	}
	return v
}

// bill is what launches cost by class of groups, the last class first, since what a better class can do no worse one shall; and how
// many pods they are.
type bill struct {
	costs []float64
	pods  int64
}

// bill adds up what launches cost.
func (y *yardstick) bill(launched []int64) bill {
	b := bill{costs: make([]float64, y.classes)}
	for i, n := range launched {
		b.costs[y.classes-1-y.class[i]] += y.cost[i] * float64(n/y.hosts[i])
		b.pods += n
	}
	return b
}

// compare orders bills, the cheaper first: class by class, then by the number of pods.
func (b *bill) compare(other *bill) (order int) {
	for i := 0; i < len(b.costs) && order == 0; i++ {
		order = compareNearly(b.costs[i], other.costs[i])
	}
	return cmp.Or(order, cmp.Compare(b.pods, other.pods))
}

// byPrice reports whether it is a group's price that counts.
func (y *yardstick) byPrice(group int) bool { return y.priced[y.of[group]] }

// compareService orders by what is left unserved.
func (v *verdict) compareService(other *verdict) int {
	return cmp.Or(
		cmp.Compare(v.claims, other.claims),
		cmp.Compare(v.gangs, other.gangs),
		compareNearly(v.unserved, other.unserved),
	)
}

func (v *verdict) compare(other *verdict) int {
	return cmp.Or(v.compareService(other), v.bill.compare(&other.bill), cmp.Compare(v.kept, other.kept))
}

// compareNearly takes sums for equal that differ by rounding only.
func compareNearly(a, b float64) int {
	if nearly := 1e-9 * max(a, b); a-b <= nearly && b-a <= nearly {
		return 0
	}
	return cmp.Compare(a, b)
}
