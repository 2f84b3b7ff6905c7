// Package readiness says how soon the pods of groups can work, and which of several equal groups are ready soonest:
// those whose pods fit on existing nodes, then those whose nodes usually take least time. It must not know where demand
// is placed, or compare plans.
package readiness

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sync"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/sharedlimits"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Readiness knows how soon the pods of each group can work. The zero Readiness knows nothing.
type Readiness struct {
	groups []fleet.Group
	costs  *cost.Model
	// waitingCost: waiting has a price.
	waitingCost bool
	// vacancies returns what is free on existing nodes, nil if nothing is. It is computed when it is first needed.
	vacancies func() *sharedlimits.Vacancies
	// seconds is how long a pod of each group takes that needs a new node; nil if nothing is known.
	seconds []float64
	// Twins are sets of groups that serve the same at the same cost.
	Twins [][]int
}

// Known reports whether anything is known.
func (y *Readiness) Known() bool { return y.seconds != nil }

// New finds what decides between groups that are equal for all items of the demand. It knows nothing if nothing does.
func New(
	r *fleet.Fleet, s *model.Snapshot, policy model.Policy, costs *cost.Model, items iter.Seq[*vector.Item],
) Readiness {
	y := Readiness{groups: r.Groups, costs: costs, waitingCost: policy.WaitingCost != 0}
	known := slices.ContainsFunc(r.Groups, func(g fleet.Group) bool { return g.Group.StartSeconds != nil })
	y.Twins = y.findTwins(items)
	if !known && len(s.Places) == 0 || len(y.Twins) == 0 && !y.waitingCost {
		return Readiness{}
	}
	y.seconds = r.StartSeconds()
	y.vacancies = sync.OnceValue(func() *sharedlimits.Vacancies { return r.NewVacancies(s) })
	return y
}

// Hosted counts the pods by group that find room on existing nodes.
func (y *Readiness) Hosted(pods []int64) []sharedlimits.Hosted { return y.vacancies().Host(pods) }

// Wait says how soon the launched pods of a plan can work. Smaller is better, compared in this order.
type Wait struct {
	// added counts the pods that need a new node, and seconds adds up how long they take.
	added   int64
	seconds float64
	// opened counts the pods on existing nodes that hold no others: such a node could be removed.
	opened int64
}

func (a Wait) Compare(b Wait) int {
	return cmp.Or(
		cmp.Compare(a.added, b.added), cost.CompareNearly(a.seconds, b.seconds), cmp.Compare(a.opened, b.opened),
	)
}

// findTwins returns the sets of groups whose replicas are equal for all demand and cost the same. If waiting has a
// price, costs may differ: the verdict compares them.
func (y *Readiness) findTwins(items iter.Seq[*vector.Item]) [][]int {
	var choices []*vector.Item
	for it := range items {
		if len(it.Request.Selectors) > 1 {
			choices = append(choices, it)
		}
	}
	at, sets := map[string]int{}, [][]int{}
	for i := range y.groups {
		g := &y.groups[i]
		if g.Blocked.Code != "" || g.MaxPods < g.Hosts || g.Trying() || g.Waiting() {
			continue
		}
		key := y.twinKey(i, choices)
		k, known := at[key]
		if !known {
			k, at[key] = len(sets), len(sets)
			sets = append(sets, nil)
		}
		sets[k] = append(sets[k], i)
	}
	return slices.DeleteFunc(sets, func(set []int) bool { return len(set) < 2 })
}

// twinKey is equal for groups whose replicas are equal: by what they have, by preference, by Ray's record of failed
// launches, by cost, and by how well their labels match items with several selectors.
func (y *Readiness) twinKey(i int, choices []*vector.Item) string {
	g := &y.groups[i]
	numbers := []uint64{uint64(g.Hosts), uint64(y.costs.Tier[i]), math.Float64bits(1)}
	if g.CloudAvailability != nil {
		numbers[2] = math.Float64bits(*g.CloudAvailability)
	}
	if !y.waitingCost {
		numbers = append(numbers, math.Float64bits(y.costs.PerReplica[i]))
	}
	for _, amount := range g.Shape.Total {
		numbers = append(numbers, uint64(amount))
	}
	for _, it := range choices {
		numbers = append(numbers, uint64(it.Rank[g.Shape.Labels]))
	}
	var key []byte
	for _, n := range numbers {
		key = binary.LittleEndian.AppendUint64(key, n)
	}
	return string(key)
}

// WaitFor returns how soon these pods can work.
func (y *Readiness) WaitFor(pods []int64) (w Wait) {
	for i, hosted := range y.vacancies().Host(pods) {
		added := pods[i] - hosted.All
		w.added, w.seconds = w.added+added, w.seconds+float64(added)*y.seconds[i]
		w.opened += max(hosted.All-hosted.Used, 0)
	}
	return w
}

// Advantage is how one group is ready sooner than another that offers the same.
type Advantage int

// NoAdvantage: they are equal. OnExistingNodes: fewer pods need a new node. StartsSooner: new nodes and the pods on
// them usually take less time. OnUsedNodes: its pods go to nodes that hold others already.
const (
	NoAdvantage Advantage = iota
	OnExistingNodes
	StartsSooner
	OnUsedNodes
)

// Sooner says how a plan with these launches is ready sooner than it would be with a replica of another group in
// place of one of the taken group.
func (y *Readiness) Sooner(taken, other int, given []int64) Advantage {
	if !y.Known() || given[taken] < y.groups[taken].Hosts {
		return NoAdvantage
	}
	instead := slices.Clone(given)
	instead[taken] -= y.groups[taken].Hosts
	instead[other] += y.groups[other].Hosts
	a, b := y.WaitFor(given), y.WaitFor(instead)
	switch {
	case a.Compare(b) >= 0:
		return NoAdvantage
	case a.added < b.added:
		return OnExistingNodes
	case cost.CompareNearly(a.seconds, b.seconds) < 0:
		return StartsSooner
	}
	return OnUsedNodes
}
