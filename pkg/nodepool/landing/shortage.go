package landing

import (
	"fmt"
	"slices"

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
func (p *Packer) All() *Taken {
	s := p.Empty()
	s.all = true
	s.bins = append(s.bins, p.useless...)
	return s
}

// Shortage returns why no more pods of a kind fit. The state must come from All.
func (s *Taken) Shortage(pod int) Shortage {
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
	if left != unlimited && on.nodes < Unbounded {
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
func (s *Taken) ruleAgainst(pod int, roomy []int) string {
	const apart, spread = "podAntiAffinity or a port of the node", "topologySpreadConstraints of maxSkew %d"
	r, fewest := &s.packer.kinds[pod].rules, s.fewest(pod)
	keeps := func(own *rules) bool {
		return !slices.ContainsFunc(roomy, func(at int) bool {
			b := s.bins[at].bin
			return b.holds == nil || s.packer.places[b.place].anySize ||
				own.spread(b, fewest, own.onNode(pod, b.holds, 1)) > 0
		})
	}
	switch {
	case !keeps(r):
		return ""
	case keeps(&rules{apart: r.apart}):
		return apart + onHosts
	}
	for i := range r.spreads {
		if one := r.spreads[i : i+1]; !slices.ContainsFunc(roomy, func(at int) bool {
			return (&rules{spreads: one}).spread(s.bins[at].bin, fewest[i:], 1) > 0
		}) {
			return fmt.Sprintf(spread, one[0].maxSkew) + onHosts
		}
	}
	return "podAntiAffinity and topologySpreadConstraints together"
}

const onHosts = " with topologyKey " + HostnameLabel
