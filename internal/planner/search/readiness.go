package search

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// readiness knows how soon the pods of each group can work.
type readiness struct {
	// vacancies returns what is free on existing nodes, nil if nothing is. It is computed when it is first needed.
	vacancies func() *fleet.Vacancies
	// seconds is how long a pod of each group takes that needs a new node.
	seconds []float64
	// twins are sets of groups that serve the same at the same cost.
	twins [][]int
}

// wait says how soon the launched pods of a plan can work. Smaller is better, compared in this order.
type wait struct {
	// added counts the pods that need a new node, and seconds adds up how long they take.
	added   int64
	seconds float64
	// opened counts the pods on existing nodes that hold no others: such a node could be removed.
	opened int64
}

func (a wait) compare(b wait) int {
	return cmp.Or(
		cmp.Compare(a.added, b.added), cost.CompareNearly(a.seconds, b.seconds), cmp.Compare(a.opened, b.opened),
	)
}

// setReadiness finds what decides between equal groups. It leaves the readiness empty if nothing does.
func (p *Search) setReadiness(s *model.Snapshot) {
	known := slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return g.Group.StartSeconds != nil })
	twins := p.findTwins()
	if !known && len(s.Places) == 0 || len(twins) == 0 && p.Policy.WaitingCost == 0 {
		return
	}
	p.ready = readiness{
		seconds: p.StartSeconds(), twins: twins,
		vacancies: sync.OnceValue(func() *fleet.Vacancies { return p.NewVacancies(s) }),
	}
}

// findTwins returns the sets of groups whose replicas are equal for all demand and cost the same. If waiting has a
// price, costs may differ: the verdict compares them.
func (p *Search) findTwins() [][]int {
	var choices []*vector.Item
	p.eachItem(func(it *vector.Item) bool {
		if len(it.Request.Selectors) > 1 {
			choices = append(choices, it)
		}
		return true
	})
	at, sets := map[string]int{}, [][]int{}
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Blocked.Code != "" || g.MaxPods < g.Hosts || g.Trying() || g.Waiting() {
			continue
		}
		key := p.twinKey(i, choices)
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
func (p *Search) twinKey(i int, choices []*vector.Item) string {
	g := &p.Groups[i]
	numbers := []uint64{uint64(g.Hosts), uint64(p.Costs.Tier[i]), math.Float64bits(1)}
	if g.CloudAvailability != nil {
		numbers[2] = math.Float64bits(*g.CloudAvailability)
	}
	if p.Policy.WaitingCost == 0 {
		numbers = append(numbers, math.Float64bits(p.Costs.PerReplica[i]))
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

// waitFor returns how soon these pods can work.
func (y *readiness) waitFor(pods []int64) (w wait) {
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

// ReadySooner says how a plan with these launches is ready sooner than it would be with a replica of another group in
// place of one of the taken group.
func (p *Search) ReadySooner(taken, other int, given []int64) Advantage {
	if given[taken] < p.Groups[taken].Hosts || p.ready.seconds == nil {
		return NoAdvantage
	}
	instead := slices.Clone(given)
	instead[taken] -= p.Groups[taken].Hosts
	instead[other] += p.Groups[other].Hosts
	a, b := p.ready.waitFor(given), p.ready.waitFor(instead)
	switch {
	case a.compare(b) >= 0:
		return NoAdvantage
	case a.added < b.added:
		return OnExistingNodes
	case cost.CompareNearly(a.seconds, b.seconds) < 0:
		return StartsSooner
	}
	return OnUsedNodes
}
