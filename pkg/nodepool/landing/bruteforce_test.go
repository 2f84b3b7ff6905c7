package landing_test

import (
	"slices"
	"strconv"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// machine is one node with single cards, as a scheduler sees it.
type machine struct {
	name  string
	place landing.Place
	free  landing.Quantities
	cards []oneCard
	holds map[string]int64
}

type oneCard struct {
	total, memory, cores, slots int64
	used                        bool
}

// machines unfolds places into single nodes. A new pool without a bound has as many nodes as there are pods.
func machines(places []landing.Place, most int64) []machine {
	amount := func(n *int64) int64 {
		if n == nil {
			return 1 << 30
		}
		return *n
	}
	var list []machine
	for _, p := range places {
		nodes := most
		if p.Nodes != nil {
			nodes = *p.Nodes
		}
		for range nodes {
			m := machine{name: strconv.Itoa(len(list)), place: p, free: landing.Quantities{"pods": raydemand.Whole(1 << 20)}, holds: map[string]int64{}}
			for name, n := range p.Free {
				m.free[name] = n
			}
			for name, n := range p.Holds {
				m.holds[name] = n
			}
			for _, c := range p.Cards {
				for range max(c.Count, 1) {
					m.cards = append(m.cards, oneCard{c.Total, amount(c.Memory), amount(c.Cores), amount(c.Slots), c.Used})
				}
			}
			list = append(list, m)
		}
	}
	return list
}

// assignable reports whether all pods can be placed, by trying every node and every choice of cards.
func assignable(nodes []machine, pods []landing.Pod, counts []int64) bool {
	return tryKind(nodes, pods, slices.Clone(counts), 0)
}

// tryKind places one pod of the first kind that has one left, on this node or a later one.
func tryKind(nodes []machine, pods []landing.Pod, left []int64, from int) bool {
	kind := slices.IndexFunc(left, func(n int64) bool { return n > 0 })
	if kind < 0 {
		return true
	}
	pod := &pods[kind]
	left[kind]--
	defer func() { left[kind]++ }()
	for i := from; i < len(nodes); i++ {
		if !slices.Contains(nodes[i].place.Accepts, pod.Name) || !nodes[i].take(pod, 1) {
			continue
		}
		next := 0
		if left[kind] > 0 {
			next = i
		}
		parts := 0
		if pod.Cards != nil && nodes[i].cards != nil {
			parts = int(max(pod.Cards.Cards, 1))
		}
		done := nodes[i].tryCards(pod.Cards, 0, parts, func() bool { return tryKind(nodes, pods, left, next) })
		nodes[i].take(pod, -1)
		if done {
			return true
		}
	}
	return false
}

func (m *machine) take(pod *landing.Pod, n int64) bool {
	if n > 0 && m.free["pods"] < raydemand.One {
		return false
	}
	for name, amount := range pod.Requests {
		if n > 0 && amount > m.free[name] {
			return false
		}
	}
	m.free["pods"] -= raydemand.Whole(n)
	for name, amount := range pod.Requests {
		m.free[name] -= amount.Times(n)
	}
	return true
}

// tryCards places a pod's parts on different cards, in every way.
func (m *machine) tryCards(request *landing.CardRequest, from, parts int, then func() bool) bool {
	if parts == 0 {
		return then()
	}
	for i := from; i < len(m.cards); i++ {
		before := m.cards[i]
		if !m.cards[i].take(request) {
			continue
		}
		done := m.tryCards(request, i+1, parts-1, then)
		m.cards[i] = before
		if done {
			return true
		}
	}
	return false
}

func (c *oneCard) take(request *landing.CardRequest) bool {
	memory := request.Memory
	if memory == 0 {
		memory = c.total * request.MemoryPercent / 100
	}
	if c.memory < memory || c.cores < request.Cores || c.cores == 0 || c.slots < 1 || request.Cores >= 100 && c.used {
		return false
	}
	c.memory, c.cores, c.slots, c.used = c.memory-memory, c.cores-request.Cores, c.slots-1, true
	return true
}

// inOrder reports whether pods of these kinds can be placed one after the other, each where the filters for resources and
// anti-affinity allow it at that time.
func inOrder(nodes []machine, pods []landing.Pod, order []int) bool {
	if len(order) == 0 {
		return true
	}
	pod := &pods[order[0]]
	for i := range nodes {
		m := &nodes[i]
		if !slices.Contains(m.place.Accepts, pod.Name) || !apartAllows(pods, pod, m) || !m.take(pod, 1) {
			continue
		}
		m.holds[pod.Name]++
		done := inOrder(nodes, pods, order[1:])
		m.holds[pod.Name]--
		m.take(pod, -1)
		if done {
			return true
		}
	}
	return false
}

func (m *machine) counted(names []string) (n int64) {
	for _, name := range names {
		n += m.holds[name]
	}
	return n
}

func apartAllows(pods []landing.Pod, pod *landing.Pod, m *machine) bool {
	for i := range pods {
		if &pods[i] == pod && m.counted(pod.Apart) > 0 {
			return false
		}
		if slices.Contains(pods[i].Apart, pod.Name) && m.counted([]string{pods[i].Name}) > 0 {
			return false
		}
	}
	return true
}
