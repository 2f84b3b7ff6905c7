package podfit

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// PodsIn is how many pods of the shape so much of a node holds. It does not look at single cards: a node that is not
// there has none to look at.
func (p *PodShape) PodsIn(room Quantities) int64 {
	n := int64(Unbounded)
	if pods, known := room["pods"]; known {
		n = WholeUnits(pods)
	}
	for name, want := range p.Requests {
		if want > 0 && !CheckedElsewhere[name] {
			n = min(n, int64(room[name]/want))
		}
	}
	return n
}

// Take lowers room by n pods, in place.
func (p *PodShape) Take(room Quantities, n int) {
	for name, want := range p.Requests {
		if have, known := room[name]; known {
			room[name] = max(have-want.Times(int64(n)), 0)
		}
	}
	if have, known := room["pods"]; known {
		room["pods"] = max(have-raydemand.Whole(int64(n)), 0)
	}
}

// Unbounded stands for pods that no request bounds; their sum over all nodes there can be does not overflow.
const Unbounded = 1 << 40

func CappedProduct(a, b int64) int64 {
	if a > Unbounded/max(b, 1) {
		return Unbounded
	}
	return a * b
}

// PodsOn is how many pods of this shape the node would hold, were it empty: by what it announces for pods and has on cards that are well, and of parts
// of cards card by card. It does not look at whether they may land there.
func (p *PodShape) PodsOn(node *Node) int64 {
	return p.podsOn(node, node.Usable, (*nodegpu.GPUs).WellCards)
}

// PodsOnNew is PodsOn for a node like this one that is added: its cards are well.
func (p *PodShape) PodsOnNew(node *Node) int64 {
	announced := func(name string) raydemand.Amount { return node.Allocatable[name] }
	return p.podsOn(node, announced, func(gpus *nodegpu.GPUs) *int64 { return gpus.Cards })
}

func (p *PodShape) podsOn(node *Node, has func(resource string) raydemand.Amount, cardsOf func(*nodegpu.GPUs) *int64) int64 {
	n := int64(Unbounded)
	if pods := node.Allocatable["pods"]; pods > 0 {
		n = WholeUnits(pods)
	}
	for name, want := range p.Requests {
		if want > 0 && !CheckedElsewhere[name] {
			n = min(n, int64(has(name)/want))
		}
	}
	_, asks := p.cardRequest()
	if n == 0 || !asks && node.GPUs == nil {
		return n
	}
	gpus := ReadNode(nodegpu.Reader{}, node)
	ask, asks := p.cardRequestOn(&gpus)
	cards := cardsOf(&gpus)
	if !asks || gpus.Kind != ask.kind || cards == nil {
		return n
	}
	if ask.memory == 0 && p.Requests[gpuinfo.HAMiMemoryPercentage] > 0 {
		return n
	}
	return min(n, podsOverAlike(*cards, ask.emptyRoom(gpus), ask.cards))
}

// emptyRoom is how often the card's part of a pod fits on one card of a node, were it empty and well; cards of a node are alike. What is not known of
// cards bounds nothing.
func (a cardRequest) emptyRoom(gpus nodegpu.GPUs) int64 {
	times := int64(Unbounded)
	switch largest, known := gpus.LargestCard(a.resource); {
	case a.memory == 0:
		times = 1 // without an amount it is all of the card
	case known:
		times = largest / a.memory
	}
	if a.cores > 0 {
		times = min(times, 100/a.cores)
	}
	return times
}

// podsOverAlike is how many pods fit that take a place on so many cards each, of cards with the same room. It makes no list of them: a label that counts
// cards is no bound on memory.
func podsOverAlike(count, room, cards int64) int64 {
	switch {
	case count < cards:
		return 0
	case room >= Unbounded:
		return Unbounded
	}
	return CappedProduct(count, room) / cards
}
