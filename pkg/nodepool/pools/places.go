package pools

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// Kind is the pods of one worker group: what they take, and on which nodes they may be scheduled.
type Kind struct {
	binpack.Pod
	Shape *podfit.PodShape
}

// stocktaking collects the places of some kinds of pods.
type stocktaking struct {
	stock *Stock
	kinds []Kind
	own   OnNodes
	pools map[string]*poolStock
	// entries are nodes that accept a kind, places the result.
	entries []stockEntry
	places  []binpack.Place
	// constrained: a constraint between pods counts nodes on which nothing is free.
	constrained bool
	// keys are the labels of topology domains that count.
	keys []string
}

// poolStock is what the nodes of a pool show about each kind of pods, and about a new node.
type poolStock struct {
	counts []poolCount
	// fresh is the most of each resource that a node has on which pods fit, freshCards the one of them with the most
	// cards.
	fresh      podfit.Quantities
	freshCards *podfit.Node
	// domains are the topology domains of a new node, as far as all known nodes of the pool share them.
	domains map[string]string
}

// stockEntry is nodes that are the same for all kinds. accepts are the kinds of pods that may be scheduled there,
// coming those whose pods may be when the nodes have come up.
type stockEntry struct {
	podfit.Kind
	accepts, coming []int
	// counted are the kinds for whose spread the nodes are domains although they do not accept them.
	counted []int
}

// Places returns where pods of these kinds may run: existing nodes with what is free on them, then what each pool may
// still add. A kind that no place accepts fits no known node and no pool. own are pods of these kinds that are on nodes
// already. The pods of the kinds are returned with the constraints between them and pods on nodes.
func (s *Stock) Places(kinds []Kind, own OnNodes) ([]binpack.Place, []binpack.Pod) {
	pods, own := s.constrain(kinds, own)
	t := &stocktaking{stock: s, kinds: kinds, own: own, pools: make(map[string]*poolStock, len(s.rooms))}
	for i := range s.rooms {
		pool := &poolStock{counts: make([]poolCount, len(kinds))}
		for k := range pool.counts {
			pool.counts[k].room = &s.rooms[i]
		}
		t.pools[s.rooms[i].Pool] = pool
	}
	shapes := make([]*podfit.PodShape, len(kinds))
	for i := range kinds {
		shapes[i] = kinds[i].Shape
	}
	t.keys, t.constrained = topologyKeys(pods)
	for _, kind := range s.nodes.Kinds(shapes, t.keys) {
		t.look(kind)
	}
	for i := range t.entries {
		t.addExisting(&t.entries[i])
	}
	for i := range s.rooms {
		t.addNew(&s.rooms[i])
	}
	return t.places, pods
}

// look compares nodes with each kind of pods.
func (t *stocktaking) look(nodes podfit.Kind) {
	pool := t.pools[nodes.Node.PoolName()]
	if pool == nil {
		return
	}
	entry := stockEntry{Kind: nodes}
	var misses []podfit.Mismatch
	fits := false
	for i := range t.kinds {
		misses = t.kinds[i].Shape.Mismatches(nodes.Node, misses[:0])
		verdict := pool.counts[i].add(t.kinds[i].Shape, nodes.Node, misses)
		fits = fits || verdict == showsPods || verdict == holdsPods
		switch verdict {
		case holdsPods:
			entry.accepts = append(entry.accepts, i)
		case holdsPodsSoon:
			entry.coming = append(entry.coming, i)
		default:
			if t.constrained && t.kinds[i].Shape.IsDomain(nodes.Node) {
				entry.counted = append(entry.counted, i)
			}
		}
	}
	if fits {
		pool.agree(nodes.Node, t.keys)
		pool.show(nodes.Node)
	}
	if len(nodes.Members) > 0 && (t.constrained || len(entry.accepts)+len(entry.coming) > 0) {
		t.entries = append(t.entries, entry)
	}
}

// show takes a new node to be as large as this one in each resource.
func (p *poolStock) show(node *podfit.Node) {
	if p.fresh == nil {
		p.fresh = podfit.Quantities{}
	}
	for name, amount := range node.Allocatable {
		if amount > 0 {
			p.fresh[name] = max(p.fresh[name], amount)
		}
	}
	if p.freshCards == nil || cardsOf(node) > cardsOf(p.freshCards) {
		p.freshCards = node
	}
}

// cardsOf returns how many cards the node has, 0 if their number is unknown.
func cardsOf(node *podfit.Node) int64 {
	if node.GPUs == nil || node.GPUs.Cards == nil {
		return 0
	}
	return *node.GPUs.Cards
}

// addExisting adds the nodes of an entry, those with equally much free as one place.
func (t *stocktaking) addExisting(entry *stockEntry) {
	accepts, like := t.soon(entry)
	names := t.names(accepts)
	for _, l := range t.stock.lotsOf(entry.Kind) {
		if like != nil {
			l = l.as(like)
		}
		for _, part := range t.apart(l) {
			counts := t.constrained && len(accepts)+len(entry.counted)+len(part.holds) > 0
			if !counts && !t.anyFits(accepts, part.free) {
				continue
			}
			nodes, first := int64(len(part.members)), &t.stock.nodes.Nodes()[part.members[0]]
			t.places = append(t.places, binpack.Place{
				Pool: entry.Node.Pool, Node: first.Name, Nodes: &nodes, Free: part.free,
				Cards: t.inPercent(part.cards), CardOrder: part.order, Accepts: names, Counted: t.names(entry.counted),
				Domains: domains(first.Labels, t.keys), Holds: part.holds,
			})
		}
	}
}

// soon returns the kinds of pods that an entry accepts, with those that it accepts when it has come up, and then the
// node that it will be like.
func (t *stocktaking) soon(entry *stockEntry) (accepts []int, like *podfit.Node) {
	accepts = entry.accepts
	kind := instanceType(entry.Node)
	for _, i := range entry.coming {
		best := t.pools[entry.Node.PoolName()].counts[i].byType[kind]
		if kind != "" && best.pods > 0 {
			accepts, like = append(slices.Clone(accepts), i), best.node
		}
	}
	slices.Sort(accepts)
	return accepts, like
}

// as returns the lot with what a node has that has come up and these have not announced yet.
func (l lot) as(like *podfit.Node) lot {
	l.free = maps.Clone(l.free)
	for name, amount := range like.Allocatable {
		if _, announced := l.free[name]; !announced && amount > 0 {
			l.free[name] = amount
		}
	}
	if l.cards == nil {
		l.cards, l.order = newCards(like)
	}
	return l
}

// inPercent counts the memory of cards in percent if it is unknown and no pod requests an amount.
func (t *stocktaking) inPercent(cards []binpack.Card) []binpack.Card {
	asksAmount := func(k Kind) bool { return k.Cards != nil && k.Cards.Memory > 0 }
	unknown := func(c binpack.Card) bool { return c.Total == 0 && c.Memory == nil }
	if !slices.ContainsFunc(cards, unknown) || slices.ContainsFunc(t.kinds, asksAmount) {
		return cards
	}
	cards = slices.Clone(cards)
	for i := range cards {
		if unknown(cards[i]) {
			cards[i].Total, cards[i].Memory = 100, whole(100)
		}
	}
	return cards
}

// anyFits reports whether a pod of one of the kinds fits in what is free on a node.
func (t *stocktaking) anyFits(kinds []int, free podfit.Quantities) bool {
	return slices.ContainsFunc(kinds, func(i int) bool { return t.kinds[i].Shape.PodsIn(free) > 0 })
}

func (t *stocktaking) names(kinds []int) []string {
	if len(kinds) == 0 {
		return nil
	}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = t.kinds[kind].Name
	}
	return names
}

func domains(labels map[string]string, keys []string) map[string]string {
	var values map[string]string
	for _, key := range keys {
		if value, set := labels[key]; set && key != binpack.Hostname {
			if values == nil {
				values = map[string]string{}
			}
			values[key] = value
		}
	}
	return values
}

// addNew adds the nodes that a pool may still add: of its largest known node or declared shape or, if nodes may be of
// any size, whatever its limits allow.
func (t *stocktaking) addNew(room *Room) {
	pool := t.pools[room.Pool]
	var alike, anySize []int
	for i := range t.kinds {
		count := &pool.counts[i]
		_, named := t.kinds[i].Shape.Hostnames()
		switch _, could := count.of(room, t.kinds[i].Shape); {
		case !could, named: // no new node has the name of one that is there
		case count.perNode > 0 && !room.Mixed:
			alike = append(alike, i)
		default:
			anySize = append(anySize, i)
		}
	}
	if len(alike) > 0 {
		place := binpack.Place{Pool: room.Pool, New: true, Nodes: room.MayAddNodes, Free: pool.fresh,
			Accepts: t.names(alike), Domains: pool.domains}
		if pool.freshCards != nil {
			place.Cards, place.CardOrder = newCards(pool.freshCards)
			place.Cards = t.inPercent(place.Cards)
		}
		t.places = append(t.places, place)
	}
	if len(anySize) > 0 {
		t.places = append(t.places, binpack.Place{Pool: room.Pool, New: true, AnySize: true,
			Nodes: room.nodesOfAnySize(), Free: room.left(), Accepts: t.names(anySize)})
	}
}

// left returns what new nodes may have in total within the limits.
func (r *Room) left() podfit.Quantities {
	free := podfit.Quantities{}
	for name, limit := range r.Limits {
		free[name] = max(limit-r.Used[name], 0)
	}
	return free
}

// nodesOfAnySize returns 0 if no node may be added, and nil for no bound: a number of nodes bounds nothing if a node
// may be of any size.
func (r *Room) nodesOfAnySize() *int64 {
	full := r.MayAddNodes != nil && *r.MayAddNodes == 0
	for name, left := range r.left() {
		full = full || left == 0 && everyNodeHas[name]
	}
	if full {
		return new(int64)
	}
	return nil
}
