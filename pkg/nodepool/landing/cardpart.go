package landing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cardRequest is what a pod requests of single cards: a number of cards, and of each an amount of memory and a
// percentage of cores. A resource that is reported as a sum over cards does not say whether one of them is large
// enough.
type cardRequest struct {
	// resource is the one that counts memory; kind is the one whose node it needs.
	resource string
	kind     gpuinfo.Kind
	// cards is how many parts of cards the pod has, and apart how many of them are on different cards.
	cards, apart int64
	// memory is in units of the resource: GiB or another unit for gpu-mem, MiB for HAMi and Volcano. It is that of a
	// part on average, and largest that of the largest part.
	memory, largest, cores int64
}

// cardRequest returns what the pod requests of cards, and false if it requests whole devices or nothing. Containers
// with amounts of their own have parts of their own.
func (p *PodShape) cardRequest() (sum cardRequest, asks bool) {
	if len(p.Parts) == 0 {
		return p.requestOfCards()
	}
	var memory, cores int64
	for _, requests := range p.Parts {
		part, asks := (&PodShape{Requests: requests, CardsAsked: p.CardsAsked}).requestOfCards()
		if !asks {
			continue // less than a whole unit, which no scheduler takes
		}
		memory, cores = memory+part.memory*part.cards, cores+part.cores*part.cards
		sum.resource, sum.kind = part.resource, part.kind
		sum.cards, sum.apart = sum.cards+part.cards, max(sum.apart, part.cards)
		sum.largest = max(sum.largest, part.memory)
	}
	if sum.cards == 0 {
		return sum, false
	}
	sum.memory, sum.cores = memory/sum.cards, cores/sum.cards
	return sum, true
}

// apartOn returns how many different cards of the node the pod needs at least. HAMi gives several instances of a card
// that it partitions with MIG to one container (HAMi v2.9.0, Fit in pkg/device/nvidia/device.go).
func (a cardRequest) apartOn(gpus *sharing.GPUs) int64 {
	if _, some := cutCards(gpus); a.resource == gpuinfo.HAMiMemory && some {
		return 1
	}
	return a.apart
}

// cutCards reports whether HAMi or Volcano cuts all of a node's cards on request, and whether it cuts some of them.
func cutCards(gpus *sharing.GPUs) (all, some bool) {
	uncut := func(c sharing.Card) bool { return len(c.Profiles) == 0 }
	all = len(gpus.PerCard) > 0 && !slices.ContainsFunc(gpus.PerCard, uncut)
	return all, slices.ContainsFunc(gpus.PerCard, func(c sharing.Card) bool { return !uncut(c) })
}

// uncounted returns why it is unknown how many pods the cards of a node hold, if none is known to: they may be cut into
// profiles that nothing shows.
func (p *PodShape) uncounted(gpus *sharing.GPUs) (m mismatch, is bool) {
	part := p.cardPart(nil)
	all, some := cutCards(gpus)
	unproven := func(c sharing.Card) bool { return c.UnprovenMiB > 0 }
	if part == nil || gpus.Kind != gpuinfo.VGPU || !some && !slices.ContainsFunc(gpus.PerCard, unproven) {
		return m, false
	}
	resource := gpuinfo.HAMiMemory
	if gpus.Units[gpuinfo.VolcanoNumber] > 0 {
		resource = gpuinfo.VolcanoMemory
	}
	unit, known := gpus.MemoryUnit(resource)
	if part.Cards > 1 && !part.Stacked && some && !all && resource == gpuinfo.HAMiMemory {
		return mismatch{kind: uncounted, what: fmt.Sprintf("has cards that are cut into MIG instances beside others, "+
			"so it is unknown how it gives a container %d parts", part.Cards)}, known
	}
	open := ""
	for i := range gpus.PerCard {
		card := &gpus.PerCard[i]
		mib := part.Memory * unit
		if part.Memory == 0 && part.MemoryPercent < 100 && card.MemoryMiB != nil {
			mib = *card.MemoryMiB * part.MemoryPercent / 100
		}
		like := gpus.OfCard(card)
		_, holds := like.Holding(mib)
		switch {
		case p.Choice.Refuses(*card) != "" || card.Healthy != nil && !*card.Healthy:
		case card.Unproven(mib):
			open = cmp.Or(open, "cuts cards of model "+card.Model+" into MIG instances, and no profile is known to "+
				"hold the request")
		case holds, len(card.Profiles) == 0 && (card.MemoryMiB == nil || mib <= *card.MemoryMiB):
			return m, false
		}
	}
	return mismatch{kind: uncounted, what: open}, open != "" && known
}

// requestOfCards is cardRequest of one container, or of a pod of which one container has GPUs.
func (p *PodShape) requestOfCards() (cardRequest, bool) {
	asked := func(name string) int64 { return WholeUnits(p.Requests[name]) }
	ask := func(resource string, kind gpuinfo.Kind, cards, memory, cores int64) (cardRequest, bool) {
		return cardRequest{resource, kind, cards, cards, memory, memory, cores}, true
	}
	switch {
	case asked(gpuinfo.AliyunMemory) > 0:
		cards := max(p.CardsAsked, 1)
		return ask(gpuinfo.AliyunMemory, gpuinfo.GPUMemory, cards, (asked(gpuinfo.AliyunMemory)+cards-1)/cards,
			asked(gpuinfo.AliyunCores))
	case asked(gpuinfo.VolcanoShared) > 0:
		return ask(gpuinfo.VolcanoShared, gpuinfo.GPUMemory, 1, asked(gpuinfo.VolcanoShared), 0)
	case asked(gpuinfo.VolcanoNumber) > 0 || asked(gpuinfo.VolcanoMemory) > 0:
		return ask(gpuinfo.VolcanoMemory, gpuinfo.VGPU, max(asked(gpuinfo.VolcanoNumber), 1),
			asked(gpuinfo.VolcanoMemory), asked(gpuinfo.VolcanoCores))
	case asked(gpuinfo.HAMiMemory) > 0 || asked(gpuinfo.HAMiCores) > 0:
		return ask(gpuinfo.HAMiMemory, gpuinfo.VGPU, max(asked(gpuinfo.NvidiaGPU), 1), asked(gpuinfo.HAMiMemory),
			min(asked(gpuinfo.HAMiCores), 100)) // HAMi takes more than 100 for 100
	}
	return cardRequest{}, false
}

// cardRequestOn is cardRequest on a node that hands out memory under a configured name.
func (p *PodShape) cardRequestOn(gpus *sharing.GPUs) (cardRequest, bool) {
	if ask, asks := p.cardRequest(); asks {
		return ask, true
	}
	var first cardRequest
	for name := range gpus.UnitsPerCard {
		units := WholeUnits(p.Requests[name])
		if units > 0 && (first.resource == "" || name < first.resource) {
			first = cardRequest{name, gpuinfo.GPUMemory, 1, 1, units, units, 0}
		}
	}
	return first, first.resource != ""
}

// cardPart returns what a pod takes of single cards where a scheduler hands out parts of them; nil if it requests no
// card. A request for a card without an amount of memory takes all of its memory. memories are the resources that count
// memory of cards, beside those that are known by name.
func (p *PodShape) cardPart(memories []string) *CardRequest {
	asked := func(name string) int64 { return WholeUnits(p.Requests[name]) }
	if part := p.percentOfCards(); part != nil {
		return part
	}
	ask, asks := p.cardRequest()
	if !asks {
		for _, name := range memories {
			if units := asked(name); units > 0 {
				return &CardRequest{Cards: 1, Memory: units, Order: p.CardOrder}
			}
		}
		if ask.cards = asked(gpuinfo.NvidiaGPU); ask.cards <= 0 {
			return nil
		}
	}
	part := &CardRequest{Cards: ask.cards, Memory: ask.memory, Cores: ask.cores, Order: p.CardOrder,
		Stacked: len(p.Parts) > 0}
	if part.Memory == 0 {
		percent := max(asked(gpuinfo.HAMiMemoryPercentage), asked(gpuinfo.VolcanoMemoryPercentage))
		if part.MemoryPercent = percent; percent == 0 {
			part.MemoryPercent = 100
		}
	}
	return part
}

// overPercent returns the request for more than all memory of a card; empty if there is none. HAMi and Volcano take the
// percentage only without an amount of memory, and never find such a card
// (docs/reference/facts.md#choice-of-a-card).
func (p *PodShape) overPercent() string {
	for _, by := range [...]struct{ percentage, amount string }{
		{gpuinfo.HAMiMemoryPercentage, gpuinfo.HAMiMemory}, {gpuinfo.VolcanoMemoryPercentage, gpuinfo.VolcanoMemory},
	} {
		if percent := WholeUnits(p.Requests[by.percentage]); percent > 100 && WholeUnits(p.Requests[by.amount]) == 0 {
			return fmt.Sprintf("%s %d", by.percentage, percent)
		}
	}
	return ""
}

// percentOfCards reads Koordinator's requests, which are in percent of a card. More than 100 percent are several whole
// cards (Koordinator documentation, GPU share).
func (p *PodShape) percentOfCards() *CardRequest {
	both := WholeUnits(p.Requests[gpuinfo.KoordinatorBoth])
	memory := max(WholeUnits(p.Requests[gpuinfo.KoordinatorMemoryRatio]), both)
	cores := max(WholeUnits(p.Requests[gpuinfo.KoordinatorCores]), both)
	if memory <= 0 && cores <= 0 {
		return nil
	}
	cards := max(WholeUnits(p.Requests[gpuinfo.KoordinatorShared]), (max(memory, cores)+99)/100)
	each := func(percent int64) int64 { return (percent + cards - 1) / cards }
	return &CardRequest{Cards: cards, MemoryPercent: each(memory), Cores: each(cores), Order: p.CardOrder}
}

// unwanted returns why the pod wants too few of a node's cards.
func (p *PodShape) unwanted(gpus *sharing.GPUs) (m mismatch, misses bool) {
	if p.Choice == nil || gpus == nil || gpus.Kind != gpuinfo.VGPU || len(gpus.PerCard) == 0 {
		return m, false
	}
	asked := func(name string) int64 { return WholeUnits(p.Requests[name]) }
	wanted, refused := int64(0), ""
	for _, card := range gpus.PerCard {
		why := p.Choice.Refuses(card)
		if why == "" {
			wanted++
			continue
		}
		refused = cmp.Or(refused, why)
	}
	if wanted >= max(asked(gpuinfo.NvidiaGPU), asked(gpuinfo.VolcanoNumber), 1) {
		return m, false
	}
	return mismatch{kind: otherMode, what: "has " + refused}, true
}

// cardMismatches appends why no card of the node could hold its part of a pod even if all cards were empty. What the
// node does not report about its cards is not a reason.
func (p *PodShape) cardMismatches(node *Node, list []mismatch) []mismatch {
	over, gpus := p.overPercent(), node.GPUs
	if m, misses := p.unwanted(gpus); misses {
		list = append(list, m)
	}
	if gpus == nil {
		if _, asks := p.cardRequest(); !asks && over == "" {
			return list
		}
		read := ReadNode(sharing.Reader{}, node)
		gpus = &read
	}
	if over != "" && gpus.Kind == gpuinfo.VGPU {
		list = append(list, mismatch{kind: cardTooSmall,
			what: "has 100 percent of the memory of each card where " + over + " of one card is needed"})
	}
	if m, is := p.uncounted(gpus); is {
		list = append(list, m)
	}
	ask, asks := p.cardRequestOn(gpus)
	if asks && ask.resource == gpuinfo.HAMiMemory && gpus.Unregistered {
		return append(list, mismatch{kind: otherMode, what: "has no cards that HAMi registers, so HAMi's scheduler " +
			"gives no part of them"})
	}
	if !asks || gpus.Kind != ask.kind {
		return list
	}
	// A node in mode core_mem reports cores, and ACK only places pods on it that request cores.
	if ask.resource == gpuinfo.AliyunMemory && ask.cores == 0 && gpus.Units[gpuinfo.AliyunCores] > 0 {
		list = append(list, mismatch{kind: otherMode, what: "takes requests for " + gpuinfo.AliyunMemory + " with " +
			gpuinfo.AliyunCores + " only"})
	}
	switch well, apart := gpus.HealthyCards(), ask.apartOn(gpus); {
	case well == nil:
	case *gpus.Cards < apart:
		list = append(list, mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %d cards where %d are needed",
			*gpus.Cards, apart)})
	case *well < apart:
		list = append(list, mismatch{kind: unhealthy,
			what: fmt.Sprintf("has %d cards that are well where %d are needed", *well, apart)})
	}
	if largest, known := gpus.LargestCard(ask.resource); known && largest < ask.largest {
		list = append(list, mismatch{kind: cardTooSmall, what: fmt.Sprintf("has cards of %s %d where %d of one card "+
			"is needed", ask.resource, largest, ask.largest)})
	}
	return list
}

// CardShare is the part of cards that the KAI scheduler gives a pod by annotations of its template
// (docs/reference/facts.md#kai-shares). Such a pod requests no resource: a pod of KAI's own reserves the whole card.
type CardShare struct {
	// Annotation is gpu-fraction, gpu-memory or, if it is invalid, gpu-fraction-num-devices, and Value its value.
	Annotation, Value string
	// Cards is on how many cards the pod has its part; at least 1.
	Cards int64
	// PerCard is how many such pods one card holds; 0 if that depends on the card.
	PerCard int64
	// MemoryMiB is the part of each card; 0 for a fraction.
	MemoryMiB int64
	// Refused says why KAI's webhook refuses the pod; empty if it does not.
	Refused string
}

// finding returns what KAI refuses.
func (s *CardShare) finding() []raydemand.Finding {
	if s == nil || s.Refused == "" {
		return nil
	}
	return []raydemand.Finding{{Code: GPUFractionRefused, Severity: raydemand.Error, Field: s.Annotation,
		Seen: strconv.Quote(s.Value), Why: "KAI's webhook refuses every pod of the group: " + s.Refused,
		Fix: "correct the annotation, or leave it out"}}
}

// mismatch returns why a node cannot hold a pod with the share, even if it were empty.
func (s *CardShare) mismatch(node *Node) (m mismatch, misses bool) {
	if s == nil {
		return m, false
	}
	have, annotation := node.Usable(gpuinfo.NvidiaGPU), fmt.Sprintf("the annotation %s: %s", s.Annotation, s.Value)
	memory, labelled := sharing.KAICardMemory(node.Labels)
	switch gpus := ReadNode(sharing.Reader{}, node); {
	case have < raydemand.Whole(s.Cards):
		return mismatch{kind: cardTooSmall, what: fmt.Sprintf("has %s %s where %d is needed for %s",
			gpuinfo.NvidiaGPU, have, s.Cards, annotation)}, true
	case !gpus.KAIShares():
		return mismatch{kind: otherMode, what: "has MIG instances, of which the KAI scheduler gives no part (" +
			annotation + ")"}, true
	case s.MemoryMiB > 0 && !labelled && !node.Declared:
		return mismatch{kind: otherMode, what: "lacks the label " + sharing.LabelMemory + ", without which the KAI " +
			"scheduler places no pod with " + annotation}, true
	case s.MemoryMiB > memory && labelled:
		return mismatch{kind: cardTooSmall, what: fmt.Sprintf("has cards of %d MiB where %d is needed for %s", memory,
			s.MemoryMiB, annotation)}, true
	}
	return m, false
}

// onCardOf returns how many pods with the share one card of the node holds; 0 if the node does not show it.
func (s *CardShare) onCardOf(node *Node) int64 {
	if memory, labelled := sharing.KAICardMemory(node.Labels); s.MemoryMiB > 0 && labelled {
		return memory / s.MemoryMiB
	}
	return s.PerCard
}

// podsOn returns how many pods with the share the cards hold that a node has.
func (s *CardShare) podsOn(node *Node, cards int64) int64 {
	if s == nil {
		return Unbounded
	}
	perCard := s.onCardOf(node)
	if perCard == 0 && cards >= s.Cards {
		return Unbounded
	}
	return podsOverAlike(cards, perCard, s.Cards)
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
