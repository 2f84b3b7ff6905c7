package landing

import (
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cardLayout is the cards of nodes of one kind when no pod uses them, as far as parts of them are handed out.
type cardLayout struct {
	// memory is the resource in whose units a card's memory counts; empty if it counts in percent.
	memory string
	// cards is how many there are. total is the memory of each, 0 if unknown; slots is how many pods may share one, 0
	// if nothing bounds it.
	cards, total, slots int64
	order               string
	// vgpu: HAMi or Volcano hands them out. unit is the MiB of one unit of memory; 0 if it is unknown. parts
	// are what requests take.
	vgpu  bool
	unit  int64
	parts []Part
	// unproven: the cards are cut into profiles that are unknown, so no pod is known to fit.
	unproven bool
	// own are the cards if they differ.
	own []sharing.Card
}

// layoutOf returns the cards of a node, healthy ones or all; false if no parts of them are handed out, or if their
// number is unknown.
func layoutOf(node *Node, gpus *sharing.GPUs, healthy bool) (cardLayout, bool) {
	parts, some := gpus.Parts(node.Labels)
	if parts.InPercent > 0 {
		return cardLayout{cards: parts.InPercent, total: 100, order: parts.Order}, true
	}
	cards := gpus.Cards
	if healthy {
		cards = gpus.HealthyCards()
	}
	if !some || cards == nil || *cards == 0 {
		return cardLayout{}, false
	}
	l := cardLayout{cards: *cards, memory: parts.Memory, slots: parts.Slots, order: parts.Order,
		vgpu: gpus.Kind == gpuinfo.VGPU}
	if gpus.Differ() {
		l.own = slices.DeleteFunc(slices.Clone(gpus.PerCard), func(c sharing.Card) bool {
			return healthy && c.Healthy != nil && !*c.Healthy
		})
	}
	if l.memory != "" {
		l.total, _ = gpus.LargestCard(l.memory)
	}
	unit, known := gpus.MemoryUnit(l.memory)
	if !l.vgpu || !known {
		return l, true
	}
	l.unit = unit
	if (l.total == 0 || len(gpus.Profiles) > 0) && gpus.CardMemoryMiB != nil {
		l.total = *gpus.CardMemoryMiB / unit
	}
	if len(gpus.PerCard) > 0 {
		l = l.cut(&gpus.PerCard[0])
	}
	return l, true
}

// cut sets what requests take of a card.
func (l cardLayout) cut(card *sharing.Card) cardLayout {
	l.unproven, l.parts = len(card.Profiles) == 0 && card.UnprovenMiB > 0, nil
	for _, p := range card.Profiles {
		l.parts = append(l.parts, Part{Memory: p.MemoryMiB / l.unit, Cores: p.Cores})
	}
	return l
}

// each returns one card that no pod uses.
func (l cardLayout) each() Card {
	card := Card{Total: l.total, Cores: whole(100), Parts: l.parts}
	if l.total > 0 {
		card.Memory = whole(l.total)
	}
	if l.slots > 0 {
		card.Slots = whole(l.slots)
	}
	if l.unproven {
		card.Slots = whole(0)
	}
	return card
}

func whole(n int64) *int64 { return &n }

// cardsOf is the cards of a node, and how its scheduler chooses among them. It has none if no parts are handed out.
type cardsOf struct {
	cards []Card
	order string
}

// freeCards returns what pods may still take of the healthy cards of a node.
func freeCards(node *Node) cardsOf {
	gpus := ReadNode(sharing.Reader{}, node)
	layout, parts := layoutOf(node, &gpus, true)
	if !parts || node.Use == nil || len(node.Use.Cards) == 0 {
		return layout.empty()
	}
	free := cardsOf{order: layout.order}
	for i := range node.Use.Cards {
		if used := &node.Use.Cards[i]; used.Healthy == nil || *used.Healthy {
			free.cards = append(free.cards, layout.left(used))
		}
	}
	return free
}

// newCards returns the cards of a new node like this one, which are healthy and not used.
func newCards(node *Node) cardsOf {
	gpus := ReadNode(sharing.Reader{}, node)
	layout, _ := layoutOf(node, &gpus, false)
	return layout.empty()
}

// empty returns the cards when no pod uses them.
func (l cardLayout) empty() cardsOf {
	if l.cards == 0 {
		return cardsOf{}
	}
	if l.own != nil {
		empty := cardsOf{order: l.order}
		for i := range l.own {
			empty.cards = append(empty.cards, l.like(&l.own[i]).each())
		}
		return empty
	}
	card := l.each()
	card.Count = l.cards
	return cardsOf{[]Card{card}, l.order}
}

// like is the layout of one card: those of a node may differ.
func (l cardLayout) like(own *sharing.Card) cardLayout {
	if !l.vgpu {
		return l
	}
	if total := l.inUnits(own.MemoryMiB); total != nil {
		l.total = *total
	}
	if own.Shares > 0 {
		l.slots = own.Shares
	}
	if l.unit > 0 {
		l = l.cut(own)
	}
	return l
}

// left returns what pods leave of one card.
func (l cardLayout) left(used *sharing.Card) Card {
	l = l.like(used)
	card := l.each()
	lower := func(have **int64, free *int64) {
		if free == nil {
			return
		}
		if *have == nil || *free < **have {
			*have = free
		}
		card.Used = card.Used || *free < l.total
	}
	free := used.FreeUnits
	if l.vgpu {
		free = l.inUnits(used.FreeMiB)
		if l.slots > 0 && !l.unproven && used.FreeUnits != nil {
			card.Slots = whole(min(*used.FreeUnits, l.slots))
			card.Used = *used.FreeUnits < l.slots
		}
	}
	lower(&card.Memory, free)
	if card.Memory != nil && card.Total > 0 && *card.Memory > card.Total {
		card.Memory = whole(card.Total)
	}
	if used.FreeCores != nil {
		card.Cores = used.FreeCores
		card.Used = card.Used || *used.FreeCores < 100
	}
	return card
}

// inUnits converts memory of a card to units of the resource; nil if it or the unit is unknown.
func (l cardLayout) inUnits(mib *int64) *int64 {
	if mib == nil || l.unit == 0 {
		return nil
	}
	return whole(*mib / l.unit)
}

// KindOf returns the pods of a shape: what one takes of nodes and cards. Places adds the constraints between pods. A
// pod that KAI gives a part of a card takes the part that leaves room for as many of its kind as the smallest card
// holds on which it fits.
func (s *Nodes) KindOf(name string, shape *PodShape) Kind {
	kind := Kind{Pod: Pod{Name: name, Requests: Quantities{}}, Shape: shape}
	for resource, want := range shape.Requests {
		if shape.counts(resource) {
			kind.Requests[resource] = max(want, s.ofShares(shape, resource))
		}
	}
	if perCard := s.sharesOfCard(shape.Share); perCard > 0 {
		ofCard := raydemand.One / raydemand.Amount(perCard)
		kind.Requests[gpuinfo.NvidiaGPU] += ofCard.Times(shape.Share.Cards)
	}
	kind.Cards = shape.cardPart(s.memories)
	return kind
}

// sharesOfCard returns how many pods with a share one card holds, the smallest on which it fits; 0 if that is unknown.
func (s *Nodes) sharesOfCard(share *sharing.CardShare) (least int64) {
	switch {
	case share == nil:
		return 0
	case share.PerCard > 0:
		return share.PerCard
	}
	for _, kind := range s.kindsFor(nil) {
		if n := share.OnCard(kind.Node.Labels); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
