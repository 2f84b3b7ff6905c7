package landing

import (
	"slices"
	"sort"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Taken is what has been placed on the places of a Packer. Copies are cheap, because bins are immutable and shared.
type Taken struct {
	packer *Packer
	bins   []stack
	rooms  []sum
	// all keeps nodes that no pod can use.
	all bool
}

// stack is a number of equal bins.
type stack struct {
	bin   *bin
	nodes int64
	// place is the bin's; it is here for speed.
	place int
}

// sum is a sum of which some parts have no bound.
type sum struct{ bounded, unbounded int64 }

func (s *sum) add(n, sign int64) {
	if n >= Unbounded {
		s.unbounded += sign
		return
	}
	s.bounded += n * sign
}

func (s sum) total() int64 {
	if s.unbounded > 0 {
		return Unbounded
	}
	return min(s.bounded, Unbounded)
}

// CopyFrom makes the state equal to another one. They do not share anything that changes.
func (s *Taken) CopyFrom(other *Taken) {
	s.packer = other.packer
	s.bins = append(s.bins[:0], other.bins...)
	s.rooms = append(s.rooms[:0], other.rooms...)
	s.all = other.all
}

// Room returns how many more pods of this kind fit if no others are added; Unbounded if nothing bounds it.
func (s *Taken) Room(pod int) int64 { return s.rooms[pod].total() }

// Take places up to n pods and returns how many have found a place.
func (s *Taken) Take(pod int, n int64) (placed int64) {
	if n <= 0 {
		return 0
	}
	at := s.best(pod)
	if at < 0 {
		return 0
	}
	placed = s.fill(at, pod, n, s.bins[at].bin.rooms[pod])
	for more := int64(1); placed < n && more > 0; placed += more {
		more = s.fillAll(pod, n-placed)
	}
	return placed
}

// fillAll places up to n pods on all stacks that have room now, best first. A node that is filled has no room left, so
// the order does not change meanwhile.
func (s *Taken) fillAll(pod int, n int64) (placed int64) {
	var bins []*bin
	for i := range s.bins {
		if b := s.bins[i].bin; b.rooms[pod] > 0 {
			bins = append(bins, b)
		}
	}
	sort.Slice(bins, func(i, k int) bool { return bins[i].before(bins[k]) })
	for _, best := range bins {
		if placed >= n {
			break
		}
		// The nodes of a bin that is gone have been opened in another place.
		if at := s.indexOf(best, 0); at >= 0 {
			placed += s.fill(at, pod, n-placed, best.rooms[pod])
		}
	}
	return placed
}

func (s *Taken) best(pod int) int {
	best := -1
	for i := range s.bins {
		if b := s.bins[i].bin; b.rooms[pod] > 0 && (best < 0 || b.before(s.bins[best].bin)) {
			best = i
		}
	}
	return best
}

// fill places up to n pods on the nodes of a stack, up to each on one node, one node after the other.
func (s *Taken) fill(at, pod int, n, each int64) (placed int64) {
	from, stacked := s.bins[at].bin, s.bins[at].nodes
	nodes := min(n/each, stacked)
	rest := int64(0)
	if nodes < stacked {
		rest = n % each
	}
	if nodes > 0 {
		s.move(at, nodes, s.packer.take(from, pod, each))
	}
	if rest > 0 {
		s.move(s.indexOf(from, at), 1, s.packer.take(from, pod, rest))
	}
	return nodes*each + rest
}

// indexOf returns where a bin is, -1 if nowhere. It looks at a likely index first.
func (s *Taken) indexOf(b *bin, likely int) int {
	if likely < len(s.bins) && s.bins[likely].bin == b {
		return likely
	}
	for i := range s.bins {
		if s.bins[i].bin == b {
			return i
		}
	}
	return -1
}

// move replaces a number of nodes by others. New nodes that are opened are gone from the other places of the same
// nodes.
func (s *Taken) move(at int, nodes int64, to *bin) {
	from := s.bins[at].bin
	s.remove(at, nodes)
	if site := &s.packer.places[from.place]; !from.opened {
		for _, place := range site.same {
			i := slices.IndexFunc(s.bins, func(k stack) bool { return k.place == place && !k.bin.opened })
			if i >= 0 {
				s.remove(i, nodes)
			}
		}
	}
	s.insert(to, nodes)
}

// remove removes up to a number of nodes. A pool without a known bound has as many left as before.
func (s *Taken) remove(at int, nodes int64) {
	k := &s.bins[at]
	if k.nodes >= Unbounded {
		return
	}
	s.count(k.bin, k.nodes, -1)
	k.nodes -= min(nodes, k.nodes)
	s.count(k.bin, k.nodes, 1)
	if k.nodes == 0 {
		s.bins[at] = s.bins[len(s.bins)-1]
		s.bins = s.bins[:len(s.bins)-1]
	}
}

// insert adds nodes. Those that no pod can use are left out.
func (s *Taken) insert(b *bin, nodes int64) {
	if nodes == 0 || b.rank.kinds == 0 && !s.all {
		return
	}
	for i := range s.bins {
		if s.bins[i].place == b.place && (s.bins[i].bin == b || s.bins[i].bin.equal(b)) {
			s.count(b, s.bins[i].nodes, -1)
			s.bins[i].nodes += nodes
			s.count(b, s.bins[i].nodes, 1)
			return
		}
	}
	s.bins = append(s.bins, stack{b, nodes, b.place})
	s.count(b, nodes, 1)
}

func (s *Taken) count(b *bin, nodes, sign int64) {
	if nodes == 0 {
		return
	}
	for k, room := range b.rooms {
		if room > 0 {
			s.rooms[k].add(cappedProduct(room, nodes), sign)
		}
	}
}

// Shortage is why no more pods of a kind fit on a state: the first of its fields that is set. None is set if nothing is
// left on any node that accepts the pods, or if one more pod does fit.
type Shortage struct {
	// Rule is the field of the pod template, with its topologyKey, that keeps the pods from the nodes on which they
	// have room.
	Rule string
	// Cards: a node has room for a pod, but its cards, or the devices that claims take, do not.
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
	// Of each request, lacking counts the nodes that have less than one pod needs.
	amounts := make([]struct {
		left, total raydemand.Amount
		lacking     int64
	}, len(kind.requests))
	var roomy []int
	cards := false
	for at, stack := range s.bins {
		site := &s.packer.places[stack.place]
		if !site.accepts[pod] {
			continue
		}
		if s.packer.room(stack.bin, pod) > 0 {
			roomy = append(roomy, at)
		}
		cards = cards || bare.room(stack.bin, site.order) > 0
		for i, r := range kind.requests {
			a, left := &amounts[i], stack.bin.free[r.resource]
			if left < r.amount {
				a.lacking += stack.nodes
			}
			if left != unlimited && stack.nodes < Unbounded {
				a.left = a.left.Plus(left.Times(stack.nodes))
				a.total = a.total.Plus(site.free[r.resource].Times(stack.nodes))
			}
		}
	}
	switch {
	case len(roomy) > 0:
		return Shortage{Rule: s.ruleAgainst(pod, roomy)}
	case cards:
		return Shortage{Cards: true}
	}
	best := -1 // of extended resources rather than others
	for i, a := range amounts {
		if a.lacking > 0 && (best < 0 || a.lacking > amounts[best].lacking ||
			a.lacking == amounts[best].lacking && s.packer.extended[kind.requests[i].resource]) {
			best = i
		}
	}
	if best >= 0 {
		for name, number := range s.packer.resources {
			if r := kind.requests[best]; number == r.resource {
				return Shortage{Resource: name, Left: amounts[best].left, Total: amounts[best].total, Need: r.amount}
			}
		}
	}
	return Shortage{}
}

// ruleAgainst names the rule that keeps pods from all of these nodes; "" if there is a node from which it does not.
func (s *Taken) ruleAgainst(pod int, roomy []int) string {
	if slices.ContainsFunc(roomy, func(at int) bool {
		b := s.bins[at].bin
		return b.holds == nil || s.packer.places[b.place].anySize ||
			s.packer.kinds[pod].beside(pod, b.holds, 1) > 0
	}) {
		return ""
	}
	return "podAntiAffinity or a port of the node with topologyKey " + HostnameLabel
}
