package landing

import (
	"fmt"
	"maps"
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
			return healthy && !c.Usable()
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

func (l cardLayout) cut(card *sharing.Card) cardLayout {
	l.unproven, l.parts = card.Unproven(), nil
	for _, p := range card.Profiles {
		l.parts = append(l.parts, Part{Memory: p.MemoryMiB / l.unit, Cores: p.Cores})
	}
	return l
}

func (l cardLayout) each() Card {
	card := Card{Total: l.total, Cores: new(int64(100)), Parts: l.parts}
	if l.total > 0 {
		card.Memory = new(l.total)
	}
	if l.slots > 0 {
		card.Slots = new(l.slots)
	}
	if l.unproven {
		card.Slots = new(int64(0))
	}
	return card
}

// freeCards returns what pods may still take of the healthy cards of a node.
func freeCards(node *Node) (cards []Card, order string) {
	layout, parts := layoutOf(node, new(ReadNode(sharing.Reader{}, node)), true)
	if !parts || node.Use == nil || len(node.Use.Cards) == 0 {
		return layout.empty()
	}
	for i := range node.Use.Cards {
		if used := &node.Use.Cards[i]; used.Usable() {
			cards = append(cards, layout.left(used))
		}
	}
	return cards, layout.order
}

// newCards returns the cards of a new node like this one, which are healthy and not used.
func newCards(node *Node) (cards []Card, order string) {
	layout, _ := layoutOf(node, new(ReadNode(sharing.Reader{}, node)), false)
	return layout.empty()
}

// empty returns the cards when no pod uses them, and how their scheduler chooses among them. It has none if no parts
// are handed out.
func (l cardLayout) empty() (cards []Card, order string) {
	switch {
	case l.cards == 0:
		return nil, ""
	case l.own == nil:
		card := l.each()
		card.Count = l.cards
		return []Card{card}, l.order
	}
	for i := range l.own {
		cards = append(cards, l.like(&l.own[i]).each())
	}
	return cards, l.order
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
			card.Slots = new(min(*used.FreeUnits, l.slots))
			card.Used = *used.FreeUnits < l.slots
		}
	}
	lower(&card.Memory, free)
	if card.Memory != nil && card.Total > 0 && *card.Memory > card.Total {
		card.Memory = new(card.Total)
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
	return new(*mib / l.unit)
}

// KindOf returns the pods of a shape: what one takes of nodes and cards. Places adds the constraints between pods. A
// pod that KAI gives a part of a card takes the part that leaves room for as many of its kind as the smallest card
// holds on which it fits.
func (s *Nodes) KindOf(name string, shape *PodShape) Kind {
	kind := Kind{Pod: Pod{Name: name, Requests: Quantities{}, Node: shape.NodeName,
		Domain: shape.Neighbors.Domain.Key}, Shape: shape}
	for resource, want := range shape.Requests {
		if shape.counts(resource) {
			kind.Requests[resource] = max(want, s.ofShares(shape, resource))
		}
	}
	if perCard := s.sharesOfCard(shape.Share); perCard > 0 {
		ofCard := raydemand.One / raydemand.Amount(perCard)
		kind.Requests[gpuinfo.NvidiaGPU] += ofCard.Times(shape.Share.Cards)
	}
	if r, asks := shape.request(s.memories...); asks {
		kind.Cards = &CardRequest{Cards: r.Cards, Memory: r.Memory, MemoryPercent: r.Percent, Cores: r.Cores,
			Stacked: r.Stacked}
	}
	if percent := s.memoryPercent(shape); percent > 0 {
		if kind.Cards == nil {
			kind.Cards = &CardRequest{Cards: max(WholeUnits(shape.Requests[gpuinfo.KoordinatorShared]), 1)}
		}
		kind.Cards.MemoryPercent = percent
	}
	return kind
}

// memoryPercent returns the percent of a card's memory that a pod requests by Koordinator's bytes, on the smallest card
// that is large enough; 0 if it does not.
func (s *Nodes) memoryPercent(shape *PodShape) (percent int64) {
	if shape.Requests[gpuinfo.KoordinatorMemory] <= 0 {
		return 0
	}
	for _, kind := range s.kindsFor(nil) {
		gpus := ReadNode(sharing.Reader{}, kind.Node)
		switch p := gpus.MemoryPercent(shape.Requests); {
		case p > 0 && (percent == 0 || percent > 100):
			percent = p
		case p <= 100:
			percent = max(percent, p)
		}
	}
	return percent
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

// request returns what the pod asks of single cards, where a scheduler hands out parts of them; false if it asks for
// none. memories are the resources that count memory of cards, beside those that are known by name. Containers with
// amounts of their own have parts of their own.
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

// cardMismatches appends why no card of the node could hold its part of a pod even if all cards were empty. What the
// node does not report about its cards is not a reason.
func (p *PodShape) cardMismatches(node *Node, list []mismatch) []mismatch {
	over, gpus := sharing.OverPercent(p.Requests), node.GPUs
	every, asks := p.request()
	if gpus == nil {
		if every.Resource == "" && over == "" {
			return list
		}
		gpus = new(ReadNode(sharing.Reader{}, node))
	}
	if gpus.MemoryPercent(p.Requests) > 100 {
		list = append(list, mismatch{kind: cardTooSmall,
			what: "has less " + gpuinfo.KoordinatorMemory + " on each card than is needed"})
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
			what: fmt.Sprintf("has %d healthy cards where %d are needed", *well, apart)})
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
	if cards < p.Share.Cards {
		return 0
	}
	return cappedProduct(cards, perCard) / p.Share.Cards
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

// OfShares returns how many units of a resource a pod keeps from others on a node. Of shares of cards, these are all
// those of each card if the pod requests no memory, and otherwise so many that a card holds no more such pods than its
// memory does. Of any other resource, it is what the pod requests.
func OfShares(gpus *sharing.GPUs, requests Quantities, name string) raydemand.Amount {
	want := requests[name]
	if gpus == nil {
		return want
	}
	cards, shared := gpus.SharedCards[name]
	parts := WholeUnits(want)
	if !shared || parts <= 0 {
		return want
	}
	perCard := cards.PodsPerCard(WholeUnits(requests[name+"-memory"]) / parts)
	return max(want, want.Times(cards.Shares)/raydemand.Amount(perCard))
}

// ofShares is OfShares on the node where the pod keeps the most.
func (s *Nodes) ofShares(p *PodShape, name string) raydemand.Amount {
	most := p.Requests[name]
	if _, is := gpuinfo.AcceleratorOf(name); !is {
		return most
	}
	for _, kind := range s.kindsFor(nil) {
		most = max(most, OfShares(kind.Node.GPUs, p.Requests, name))
	}
	return most
}

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
	switch {
	case !asks || gpus.Kind != ask.Kind || cards == nil,
		ask.Memory == 0 && p.Requests[gpuinfo.HAMiMemoryPercentage] > 0:
		return n
	case *cards == 0:
		return 0
	}
	layout, _ := layoutOf(node, &gpus, healthy)
	if layout.own == nil {
		layout.slots = 0 // the number of shares bounds the pods on all cards together
	}
	layout.own = slices.DeleteFunc(layout.own, func(c sharing.Card) bool { return p.Choice.Refuses(c) != "" })
	empty, _ := layout.empty()
	runs := runsOf(&Place{Cards: empty})
	for i := range runs {
		if r := &runs[i]; r.total == 0 && ask.Memory == 0 {
			r.total, r.memory = 100, 100 // without an amount it is the whole card
		}
	}
	// What is free is not known here, so the order in which the scheduler chooses cards does not matter.
	c := &CardRequest{Cards: ask.Cards, Memory: ask.Memory, MemoryPercent: 100, Cores: ask.Cores, Stacked: ask.Stacked}
	part, parts := c.stacked(runs, layout.order)
	return part.fit(runs, "", cappedProduct(n, parts)) / parts
}
