package landing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

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
	for i := range nodes {
		gpus := ReadNode(g, &nodes[i])
		ask, asks := p.cardRequestOn(&gpus)
		if !asks || ask.memory == 0 || gpus.Kind != ask.kind || gpus.Units[ask.resource] <= 0 {
			continue
		}
		largest, known := gpus.LargestCard(ask.resource)
		if !known || largest >= ask.memory {
			return CardShortage{}, false
		}
		if largest > short.Largest {
			short = CardShortage{ask.resource, ask.cards, ask.memory, largest, nodes[i].Name}
		}
	}
	return short, short.Largest > 0
}
