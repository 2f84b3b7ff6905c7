package nodepool

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// cardAsk is what a pod asks of single cards: so many cards, and of each so much memory and so many percent of cores. A resource that is
// announced as a sum over cards does not tell whether one of them is large enough.
type cardAsk struct {
	// resource is the one that memory is counted in, kind whose node it takes.
	resource string
	kind     gpuinfo.Kind
	cards    int64
	// memory is in units of the resource: GiB or else for gpu-mem, MiB for HAMi and Volcano.
	memory, cores int64
}

// cardAsk returns what the pod asks of cards, and false where it asks for whole devices or nothing.
func (p *PodShape) cardAsk() (cardAsk, bool) {
	asked := func(name string) int64 { return whole(p.Requests[name]) }
	switch {
	case asked(gpuinfo.AliyunMemory) > 0:
		cards := max(p.CardsAsked, 1)
		return cardAsk{gpuinfo.AliyunMemory, gpuinfo.GPUMemory, cards, (asked(gpuinfo.AliyunMemory) + cards - 1) / cards, asked(gpuinfo.AliyunCores)}, true
	case asked(gpuinfo.VolcanoNumber) > 0 || asked(gpuinfo.VolcanoMemory) > 0:
		return cardAsk{gpuinfo.VolcanoMemory, gpuinfo.VGPU, max(asked(gpuinfo.VolcanoNumber), 1), asked(gpuinfo.VolcanoMemory), asked(gpuinfo.VolcanoCores)}, true
	case asked(gpuinfo.HAMiMemory) > 0 || asked(gpuinfo.HAMiCores) > 0:
		return cardAsk{gpuinfo.HAMiMemory, gpuinfo.VGPU, max(asked(gpuinfo.NvidiaGPU), 1), asked(gpuinfo.HAMiMemory), asked(gpuinfo.HAMiCores)}, true
	}
	return cardAsk{}, false
}

// missesOfCards appends why no card of the node could take its part of a pod, were all of them empty. What the node does not tell of its cards
// is no reason.
func (p *PodShape) missesOfCards(node *Node, list []miss) []miss {
	ask, asks := p.cardAsk()
	if !asks {
		return list
	}
	gpus := GPUReader{}.of(node)
	if gpus.Kind != ask.kind {
		return list
	}
	// A node in mode core_mem announces cores, and ACK puts on it only who asks for them (gpuinfo.ACKShared.Card).
	if ask.resource == gpuinfo.AliyunMemory && ask.cores == 0 && gpus.Units[gpuinfo.AliyunCores] > 0 {
		list = append(list, miss{kind: otherMode, what: "takes requests for " + gpuinfo.AliyunMemory + " with " + gpuinfo.AliyunCores + " only"})
	}
	if gpus.Cards != nil && *gpus.Cards < ask.cards {
		list = append(list, miss{kind: cardTooSmall, what: fmt.Sprintf("has %d cards where %d are needed", *gpus.Cards, ask.cards)})
	}
	if largest, known := gpus.largestCard(ask.resource); known && largest < ask.memory {
		list = append(list, miss{kind: cardTooSmall, what: fmt.Sprintf("has cards of %s %d where %d of one card is needed", ask.resource, largest, ask.memory)})
	}
	return list
}

// largestCard is what the largest card of a node could give of a memory resource.
func (n NodeGPUs) largestCard(resource string) (units int64, known bool) {
	if perCard, ok := n.UnitsPerCard[resource]; ok {
		return perCard, true
	}
	if resource == gpuinfo.AliyunMemory {
		return 0, false
	}
	for _, card := range n.PerCard {
		if card.MemoryMiB == nil {
			return 0, false
		}
		units, known = max(units, *card.MemoryMiB), true
	}
	return units, known
}

// CardRoom is how many more pods of this shape the node's cards have room for as they are now, by memory, cores and shares of each card: four
// cards with 15 GiB free have room for none that asks for 16, and for four that ask for 8. It is false where the pod asks for no part of a card, or
// what is free is not known.
func (n NodeGPUs) CardRoom(shape *PodShape) (pods int64, known bool) {
	ask, asks := shape.cardAsk()
	if !asks || len(n.PerCard) == 0 || n.Kind != ask.kind {
		return 0, false
	}
	rooms := make([]int64, len(n.PerCard))
	for i, card := range n.PerCard {
		if rooms[i], known = ask.roomOn(card); !known {
			return 0, false
		}
	}
	return podsOver(rooms, ask.cards), true
}

// podsOver is how many pods fit that take a place on so many cards each. The cards of one pod are different ones, so a card serves each pod once
// at most: with room 5, 1 and 1 two pods of two cards fit, not three.
func podsOver(rooms []int64, cards int64) int64 {
	const boundless = 1 << 40
	for pods := int64(boundless); ; {
		places := int64(0)
		for _, room := range rooms {
			places += min(room, pods)
		}
		if places/cards >= pods {
			return pods
		}
		pods = places / cards
	}
}

// roomOn is how often the card's part of a pod fits on one card.
func (a cardAsk) roomOn(card Card) (times int64, known bool) {
	if !card.usable() {
		return 0, true
	}
	const boundless = 1 << 20
	times = boundless
	free := card.FreeMiB
	if a.kind == gpuinfo.GPUMemory {
		free = card.FreeUnits
	} else if card.FreeUnits != nil {
		times = min(times, *card.FreeUnits)
	}
	switch {
	case free == nil:
		return 0, false
	case a.memory > 0:
		times = min(times, *free/a.memory)
	case card.MemoryMiB == nil:
		return 0, false
	case *free < *card.MemoryMiB:
		return 0, true // without an amount it is all of the card
	default:
		times = min(times, 1)
	}
	if a.cores > 0 && card.FreeCores != nil {
		times = min(times, *card.FreeCores/a.cores)
	}
	return times, true
}
