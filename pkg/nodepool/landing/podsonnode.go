package landing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// podsIn returns how many pods of the shape fit into room. It ignores single cards: a node that does not exist has none
// to check.
func (p *PodShape) podsIn(room Quantities) int64 {
	return p.podsWith(room, func(name string) raydemand.Amount { return room[name] })
}

// podsWith returns how many pods of the shape fit by what a node has of each resource. slots has the number of pods
// that it takes; without one, nothing bounds it.
func (p *PodShape) podsWith(slots Quantities, has func(resource string) raydemand.Amount) int64 {
	n := int64(Unbounded)
	if pods, known := slots["pods"]; known {
		n = WholeUnits(pods)
	}
	for name, want := range p.Requests {
		if p.counts(name) {
			n = min(n, int64(has(name)/want))
		}
	}
	return n
}

// Unbounded represents the number of pods if no request limits it; the sum over all possible nodes does not overflow.
const Unbounded = 1 << 40

func cappedProduct(a, b int64) int64 {
	if a > Unbounded/max(b, 1) {
		return Unbounded
	}
	return a * b
}

// podsOn returns how many pods of this shape the node would hold if it were empty: by what it reports for pods and has
// on healthy cards, and for parts of cards card by card. It ignores whether they may be scheduled there.
func (p *PodShape) podsOn(node *Node) int64 {
	return p.podsOnCards(node, node.Usable, true)
}

// podsOnNew is podsOn for a new node like this one, whose cards are healthy.
func (p *PodShape) podsOnNew(node *Node) int64 {
	announced := func(name string) raydemand.Amount { return node.Allocatable[name] }
	return p.podsOnCards(node, announced, false)
}

// podsOnCards counts pods by what a node has of each resource, on its healthy cards or on all.
func (p *PodShape) podsOnCards(node *Node, has func(resource string) raydemand.Amount, healthy bool) int64 {
	shares := func(name string) raydemand.Amount {
		if takes := OfShares(node.GPUs, p.Requests, name); takes > p.Requests[name] {
			return p.Requests[name].Times(int64(has(name) / takes))
		}
		return has(name)
	}
	n := min(p.podsWith(node.Allocatable, shares), p.sharesOn(node, WholeUnits(has(gpuinfo.NvidiaGPU))))
	n = p.fitDevices(node, n)
	every, _ := p.request()
	if n == 0 || node.GPUs == nil && every.Resource == "" {
		return n
	}
	gpus := ReadNode(sharing.Reader{}, node)
	ask, asks := p.requestOn(&gpus, every)
	cards := gpus.Cards
	if healthy {
		cards = gpus.HealthyCards()
	}
	if !asks || gpus.Kind != ask.Kind || cards == nil {
		return n
	}
	if ask.Memory == 0 && p.Requests[gpuinfo.HAMiMemoryPercentage] > 0 {
		return n
	}
	if gpus.Differ() {
		return min(n, podsOverDiffering(ask, &gpus, healthy, p.Choice))
	}
	largest, known := gpus.LargestCard(ask.Resource)
	room := emptyRoom(ask, &gpus, largest, known)
	if apart := ask.ApartOn(&gpus); apart < ask.Cards && *cards >= apart && room < Unbounded {
		return min(n, cappedProduct(*cards, room)/ask.Cards)
	}
	return min(n, podsOverAlike(*cards, room, ask.Cards))
}

// podsOverDiffering returns how many pods fit on the cards of a node that they want, healthy ones or all, if they were
// empty.
func podsOverDiffering(a sharing.Request, gpus *sharing.GPUs, healthy bool, choice sharing.CardChoice) int64 {
	unit, known := gpus.MemoryUnit(a.Resource)
	var list []places
	var sum int64
	for i := range gpus.PerCard {
		card := &gpus.PerCard[i]
		if healthy && card.Healthy != nil && !*card.Healthy || choice.Refuses(*card) != "" {
			continue
		}
		memory := int64(0)
		if card.MemoryMiB != nil {
			memory = *card.MemoryMiB / unit
		}
		like := gpus.OfCard(card)
		room := min(emptyRoom(a, &like, memory, known && card.MemoryMiB != nil), card.Shares)
		if card.UnprovenMiB > 0 && len(card.Profiles) == 0 || room <= 0 {
			continue
		}
		list, sum = append(list, places{1, room}), sum+room
	}
	if all, _ := gpus.CutOnRequest(); all && a.ApartOn(gpus) < a.Cards {
		return sum / a.Cards
	}
	return roomFor(list, a.Cards, mostOverCards)
}

// emptyRoom returns how often the card's part of a pod fits on one empty and healthy card of a node that has so much
// memory. Unknown amounts limit nothing.
func emptyRoom(a sharing.Request, gpus *sharing.GPUs, largest int64, known bool) int64 {
	times := int64(Unbounded)
	unit, _ := gpus.MemoryUnit(a.Resource)
	profile, cut := gpus.Holding(a.Memory * unit)
	switch {
	case cut:
		times = gpus.InstancesPerCard(profile)
	case len(gpus.Profiles) > 0:
		times = 0
	case a.Memory == 0:
		times = 1 // Without an amount it is the whole card.
	case known:
		times = largest / a.Memory
	}
	switch takes := profile.Cores; {
	case a.Cores > 0 && !cut:
		times = min(times, 100/a.Cores)
	case a.Cores > 0 && takes > 0:
		times = min(times, instancesWithCores(100, a.Cores, takes))
	}
	return times
}

// podsOverAlike returns how many pods fit that take a place on that many cards each, of cards with equal room. It does
// not build a list of cards, so a label with a huge count uses no memory.
func podsOverAlike(count, room, cards int64) int64 {
	switch {
	case count < cards:
		return 0
	case room >= Unbounded:
		return Unbounded
	}
	return cappedProduct(count, room) / cards
}
