package binpack

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Shortage is why no more pods of a kind fit on a state: the first of its fields that is set. None is set if nothing is
// left on any node that accepts the pods, or if one more pod does fit.
type Shortage struct {
	// Rule is the field of the pod template, with its topologyKey, that keeps the pods from the nodes on which they
	// have room.
	Rule string
	// Cards: a node has room for a pod, but its cards do not.
	Cards bool
	// Resource is the one of which the most nodes have less left than the Need of one pod. Left is what is left of
	// Total on all nodes that accept the pods.
	Resource          string
	Left, Total, Need raydemand.Amount
}

// All returns a state in which no pod has been placed, which keeps the nodes that no pod can use, for Shortage.
func (p *Packer) All() *State {
	s := p.Empty()
	s.all = true
	s.bins = append(s.bins, p.useless...)
	return s
}

// Shortage returns why no more pods of a kind fit. The state must come from All.
func (s *State) Shortage(pod int) Shortage {
	kind, bare := &s.packer.kinds[pod], s.packer.kinds[pod]
	bare.cards = nil
	amounts := make([]shortAmount, len(kind.requests))
	var roomy []int
	cards := false
	for at, stack := range s.bins {
		site := &s.packer.places[stack.place]
		if !site.accepts[pod] {
			continue
		}
		if kind.room(stack.bin, site.order) > 0 {
			roomy = append(roomy, at)
		}
		cards = cards || bare.room(stack.bin, site.order) > 0
		for i, r := range kind.requests {
			amounts[i].add(stack, s.packer.places[stack.place].free[r.resource], r)
		}
	}
	switch {
	case len(roomy) > 0:
		return Shortage{Rule: s.ruleAgainst(pod, roomy)}
	case cards:
		return Shortage{Cards: true}
	}
	return s.packer.shortest(kind, amounts)
}

// shortAmount adds up a resource over nodes. lacking counts those that have less than one pod needs.
type shortAmount struct {
	left, total raydemand.Amount
	lacking     int64
}

func (a *shortAmount) add(on stack, whole raydemand.Amount, r request) {
	left := on.bin.free[r.resource]
	if left < r.amount {
		a.lacking += on.nodes
	}
	if left != unlimited && on.nodes < podfit.Unbounded {
		a.left += left.Times(on.nodes)
		a.total += whole.Times(on.nodes)
	}
}

// shortest returns the resource of which the most nodes lack some, of extended ones rather than others.
func (p *Packer) shortest(kind *kind, amounts []shortAmount) Shortage {
	best := -1
	for i, a := range amounts {
		if a.lacking > 0 && (best < 0 || a.lacking > amounts[best].lacking ||
			a.lacking == amounts[best].lacking && p.extended[kind.requests[i].resource]) {
			best = i
		}
	}
	if best < 0 {
		return Shortage{}
	}
	r := kind.requests[best]
	for name, number := range p.resources {
		if number == r.resource {
			return Shortage{Resource: name, Left: amounts[best].left, Total: amounts[best].total, Need: r.amount}
		}
	}
	return Shortage{}
}

// ruleAgainst names the rule that keeps pods from all of these nodes, or all rules if only several together do; "" if
// there is a node from which none does.
func (s *State) ruleAgainst(pod int, roomy []int) string {
	r := s.packer.kinds[pod].rules
	keeps := func(one rules) bool {
		return !slices.ContainsFunc(roomy, func(at int) bool { return s.allowed(pod, at, one) })
	}
	if !keeps(r) {
		return ""
	}
	if r.together != nil && keeps(rules{together: r.together}) {
		return s.packer.ruleName("podAffinity", r.together.keys[0])
	}
	for _, apart := range r.aparts {
		if keeps(rules{aparts: []apartRule{apart}}) {
			return s.packer.ruleName("podAntiAffinity or a port of the node", apart.key)
		}
	}
	for _, spread := range r.spreads {
		if keeps(rules{spreads: []spreadRule{spread}}) {
			return s.packer.ruleName(fmt.Sprintf("topologySpreadConstraints of maxSkew %d", spread.maxSkew), spread.key)
		}
	}
	return "podAffinity, podAntiAffinity and topologySpreadConstraints together"
}

// allowed reports whether one pod may be placed on a stack under these rules alone, if it has room there.
func (s *State) allowed(pod, at int, under rules) bool {
	alone, packer, there := *s, *s.packer, s.bins[at].bin
	alone.domains.rooms = slices.Clone(s.domains.rooms)
	packer.kinds, alone.bins = slices.Clone(packer.kinds), slices.Clone(s.bins)
	packer.kinds[pod].rules, alone.packer = under, &packer
	alone.bins[at].bin = &bin{place: there.place, free: there.free, cards: there.cards, holds: there.holds,
		rank: there.rank, opened: there.opened, rooms: slices.Repeat([]int64{1}, len(packer.kinds))}
	if there.holds != nil && !packer.places[there.place].anySize && under.onNode(pod, there.holds, 1) == 0 {
		return false
	}
	if !packer.ruled {
		return true
	}
	a := alone.allows(pod, at, alone.levels(pod))
	return a.each > 0 && a.all > 0
}

func (p *Packer) ruleName(field string, key int) string {
	name := Hostname
	if key != hostKey {
		name = p.keys[key]
	}
	return field + " with topologyKey " + name
}
