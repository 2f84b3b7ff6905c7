package landing

import (
	"fmt"
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// request returns what the pod asks of cards; false if it asks for none. Containers with amounts of their own have
// parts of their own.
func (p *PodShape) request(memories ...string) (sharing.Request, bool) {
	var containers []sharing.Request
	for _, requests := range p.Parts {
		// Less than a whole unit is no request: no scheduler takes it.
		if part, asks := sharing.RequestOf(requests, p.CardsAsked); asks && part.Resource != "" {
			containers = append(containers, part)
		}
	}
	if len(containers) > 0 {
		return sharing.Joined(containers), true
	}
	return sharing.RequestOf(p.Requests, p.CardsAsked, memories...)
}

// requestOn returns what the pod asks of parts of a node's cards, if it asks r of those of any node; false if it asks
// for none, or for whole cards.
func (p *PodShape) requestOn(gpus *sharing.GPUs, r sharing.Request) (sharing.Request, bool) {
	if r.Resource == "" && len(gpus.UnitsPerCard) > 0 {
		r, _ = p.request(slices.Sorted(maps.Keys(gpus.UnitsPerCard))...)
	}
	return r, r.Resource != ""
}

// cardPart returns what a pod takes of single cards where a scheduler hands out parts of them; nil if it requests no
// card. memories are the resources that count memory of cards, beside those that are known by name.
func (p *PodShape) cardPart(memories []string) *CardRequest {
	r, asks := p.request(memories...)
	if !asks {
		return nil
	}
	return &CardRequest{Cards: r.Cards, Memory: r.Memory, MemoryPercent: r.Percent, Cores: r.Cores, Stacked: r.Stacked,
		Order: p.CardOrder}
}

// cardMismatches appends why no card of the node could hold its part of a pod even if all cards were empty. What the
// node does not report about its cards is not a reason.
func (p *PodShape) cardMismatches(node *Node, list []mismatch) []mismatch {
	over, gpus := sharing.OverPercent(p.Requests), node.GPUs
	every, asks := p.request()
	if gpus == nil {
		if every.Resource == "" && over == "" {
			return list
		}
		read := ReadNode(sharing.Reader{}, node)
		gpus = &read
	}
	if why := p.Choice.TooFew(gpus, every.Cards); why != "" {
		list = append(list, mismatch{kind: otherMode, what: why})
	}
	if over != "" && gpus.Kind == gpuinfo.VGPU {
		list = append(list, mismatch{kind: cardTooSmall,
			what: "has 100 percent of the memory of each card where " + over + " of one card is needed"})
	}
	if asks {
		if why := gpus.Uncounted(every, p.Choice); why != "" {
			list = append(list, mismatch{kind: uncounted, what: why})
		}
	}
	ask, asks := p.requestOn(gpus, every)
	if !asks {
		return list
	}
	why, certain := gpus.RefusesPod(ask)
	if why != "" {
		list = append(list, mismatch{kind: otherMode, what: why})
	}
	if certain || gpus.Kind != ask.Kind {
		return list
	}
	switch well, apart := gpus.HealthyCards(), ask.ApartOn(gpus); {
	case well == nil:
	case *gpus.Cards < apart:
		list = append(list, mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %d cards where %d are needed",
			*gpus.Cards, apart)})
	case *well < apart:
		list = append(list, mismatch{kind: unhealthy,
			what: fmt.Sprintf("has %d cards that are well where %d are needed", *well, apart)})
	}
	if largest, known := gpus.LargestCard(ask.Resource); known && largest < ask.Largest {
		list = append(list, mismatch{kind: cardTooSmall, what: fmt.Sprintf("has cards of %s %d where %d of one card "+
			"is needed", ask.Resource, largest, ask.Largest)})
	}
	return list
}

// shareMismatch returns why a node cannot hold a pod with a share by KAI, even if it were empty.
func (p *PodShape) shareMismatch(node *Node) (m mismatch, misses bool) {
	s := p.Share
	if s == nil {
		return m, false
	}
	if have := node.Usable(gpuinfo.NvidiaGPU); have < raydemand.Whole(s.Cards) {
		return mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %s %s where %d is needed for the annotation %s: %s",
			gpuinfo.NvidiaGPU, have, s.Cards, s.Annotation, s.Value)}, true
	}
	why, tooSmall := s.Misses(ReadNode(sharing.Reader{}, node), node.Labels, node.Declared)
	if tooSmall {
		return mismatch{kind: cardTooSmall, what: why}, true
	}
	return mismatch{kind: otherMode, what: why}, why != ""
}

// sharesOn returns how many pods with a share by KAI the cards hold that a node has.
func (p *PodShape) sharesOn(node *Node, cards int64) int64 {
	if p.Share == nil {
		return Unbounded
	}
	perCard := p.Share.OnCard(node.Labels)
	if perCard == 0 && cards >= p.Share.Cards {
		return Unbounded
	}
	return podsOverAlike(cards, perCard, p.Share.Cards)
}

// CardShortage says that no card of any node has what a pod requests of each of its cards, even if the cards were
// empty.
type CardShortage struct {
	// Resource counts the memory. The pod requests Each units of it on each of Cards cards.
	Resource    string
	Cards, Each int64
	// Largest is what the largest card has, and Node is the node, or the pool, that has it.
	Largest int64
	Node    string
}

// Most returns how much of the resource a pod can request on the largest card, or on as many of it as it requests: ACK
// counts the memory of all cards together, and the others that of each.
func (s CardShortage) Most() int64 {
	if s.Resource == gpuinfo.AliyunMemory {
		return s.Largest * s.Cards
	}
	return s.Largest
}

// CardShortage compares what a pod requests of one card with the largest card of the nodes. It returns false if a card
// is large enough, if no node hands out parts of cards in this way, or if a node that does so does not show how large
// its cards are.
func (p *PodShape) CardShortage(g sharing.Reader, nodes []Node) (CardShortage, bool) {
	var short CardShortage
	every, _ := p.request()
	for i := range nodes {
		gpus := ReadNode(g, &nodes[i])
		ask, asks := p.requestOn(&gpus, every)
		if !asks || ask.Memory == 0 || gpus.Kind != ask.Kind || gpus.Units[ask.Resource] <= 0 {
			continue
		}
		largest, known := gpus.LargestCard(ask.Resource)
		if !known || largest >= ask.Memory {
			return CardShortage{}, false
		}
		if largest > short.Largest {
			short = CardShortage{ask.Resource, ask.Cards, ask.Memory, largest, nodes[i].Name}
		}
	}
	return short, short.Largest > 0
}
