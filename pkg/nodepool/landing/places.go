package landing

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// stocktaking collects the places of some kinds of pods.
type stocktaking struct {
	Ask
	// like is the first kind of each kind's class.
	like []int
	// held marks by position the nodes that hold own pods; nil if there are none.
	held  []bool
	pools map[string]*poolStock
	// entries are nodes that accept a kind, places the result.
	entries []stockEntry
	places  []Place
}

// poolStock is what the nodes of a pool show about each kind of pods, and about a new node.
type poolStock struct {
	// counts are by kind; kinds of one class share theirs.
	counts []*poolView
	// coming are nodes that have not announced all that others of their type have.
	coming map[*Node]bool
}

// stockEntry is nodes that are the same for all kinds. accepts are the kinds of pods that may be scheduled there,
// coming those whose pods may be when the nodes have come up.
type stockEntry struct {
	equalNodes
	accepts, coming []int
	// counted are the kinds for whose spread the nodes are domains although they do not accept them.
	counted []int
}

// look compares nodes with each kind of pods.
func (t *stocktaking) look(nodes equalNodes) {
	pool := t.pools[nodes.Node.PoolName()]
	if pool == nil {
		return
	}
	entry := stockEntry{equalNodes: nodes}
	var misses []mismatch
	holdings := make([]holding, len(t.kinds))
	for i := range t.kinds {
		if holdings[i] = holdings[t.like[i]]; t.like[i] == i {
			misses = t.kinds[i].Shape.mismatches(nodes.Node, misses[:0])
			holdings[i] = pool.counts[i].add(t.kinds[i].Shape, nodes.Node, misses)
		}
		switch holdings[i] {
		case holdsPods:
			entry.accepts = append(entry.accepts, i)
		case holdsPodsSoon:
			entry.coming = append(entry.coming, i)
		default:
			if t.constrained && t.kinds[i].Shape.isDomain(nodes.Node) {
				entry.counted = append(entry.counted, i)
			}
		}
	}
	if len(nodes.Members) > 0 && (t.constrained || len(entry.accepts)+len(entry.coming) > 0) {
		t.entries = append(t.entries, entry)
	}
}

// addExisting adds the nodes of an entry, those with equally much free as one place.
func (t *stocktaking) addExisting(entry *stockEntry) {
	accepts, like := t.soon(entry)
	if pool := t.pools[entry.Node.PoolName()]; like != nil {
		pool.coming[entry.Node] = true
	}
	names := t.names(accepts)
	for _, l := range t.stock.lotsOf(entry.equalNodes) {
		if like != nil {
			l = l.as(like)
		}
		for _, part := range t.apart(l) {
			counts := t.constrained && len(accepts)+len(entry.counted)+len(part.holds) > 0
			if !counts && !t.anyFits(accepts, part.free) {
				continue
			}
			nodes, first := int64(len(part.members)), &t.stock.nodes[part.members[0]]
			t.places = append(t.places, Place{
				Pool: entry.Node.Pool, Node: first.Name, Nodes: &nodes, Free: part.free, Devices: part.devices,
				Cards: t.refused(t.inPercent(part.cards), first, accepts), CardOrder: part.order, Accepts: names,
				Counted: t.names(entry.counted), Holds: part.holds,
			})
		}
	}
}

// soon returns the kinds of pods that an entry accepts, with those that it accepts when it has come up, and then the
// node that it will be like.
func (t *stocktaking) soon(entry *stockEntry) (accepts []int, like *Node) {
	accepts = entry.accepts
	kind := instanceType(entry.Node)
	for _, i := range entry.coming {
		least := t.pools[entry.Node.PoolName()].counts[i].byType[kind]
		if kind != "" && least.pods > 0 {
			accepts, like = append(slices.Clone(accepts), i), least.node
		}
	}
	slices.Sort(accepts)
	return accepts, like
}

// as returns the lot with what a node has that has come up and these have not announced yet.
func (l lot) as(like *Node) lot {
	l.free = maps.Clone(l.free)
	for name, amount := range like.Allocatable {
		if _, announced := l.free[name]; !announced && amount > 0 {
			l.free[name] = amount
		}
	}
	if l.cards == nil {
		l.cardsOf = newCards(like)
	}
	return l
}

// inPercent counts the memory of cards in percent if it is unknown and no pod requests an amount.
func (t *stocktaking) inPercent(cards []Card) []Card {
	asksAmount := func(k Kind) bool { return k.Cards != nil && k.Cards.Memory > 0 }
	unknown := func(c Card) bool { return c.Total == 0 && c.Memory == nil }
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

// refused marks the cards of a node that some kinds of pods do not want.
func (t *stocktaking) refused(cards []Card, node *Node, kinds []int) []Card {
	choosy := func(i int) bool { return t.kinds[i].Shape.Choice != nil }
	if len(cards) == 0 || node.GPUs == nil || !slices.ContainsFunc(kinds, choosy) {
		return cards
	}
	cards = single(cards)
	known := slices.DeleteFunc(slices.Clone(node.GPUs.PerCard), func(c sharing.Card) bool {
		return c.Healthy != nil && !*c.Healthy
	})
	for i := range min(len(cards), len(known)) {
		for _, kind := range kinds {
			if t.kinds[kind].Shape.Choice.Refuses(known[i]) != "" {
				cards[i].Refuses = append(cards[i].Refuses, t.kinds[kind].Name)
			}
		}
	}
	return cards
}

// anyFits reports whether a pod of one of the kinds fits in what is free on a node.
func (t *stocktaking) anyFits(kinds []int, free Quantities) bool {
	return slices.ContainsFunc(kinds, func(i int) bool { return t.kinds[i].Shape.podsIn(free) > 0 })
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

// addNew adds the nodes that a pool may still add: as its declared shape or its nodes show or, if nodes may be of any
// size, whatever its limits allow.
func (t *stocktaking) addNew(room *Room) {
	pool := t.pools[room.Pool]
	var alike, anySize, unproven []int
	for i := range t.kinds {
		count := pool.counts[i]
		_, named := t.kinds[i].Shape.hostnames()
		switch _, could := count.pods(t.kinds[i].Shape); {
		case !could, named: // no new node has the name of one that is there
		case room.Mixed && count.proven(t.kinds[i].Shape):
			anySize = append(anySize, i)
		case room.Mixed || count.fresh.pods == 0 && !count.fresh.declared:
			unproven = append(unproven, i)
		case count.fresh.pods > 0:
			alike = append(alike, i)
		}
	}
	t.addAlike(room, alike)
	t.addAnySize(room, anySize, false)
	t.addAnySize(room, unproven, true)
}

// addAnySize adds what a pool may add if its nodes are of any size, or if nothing shows of what size they are.
func (t *stocktaking) addAnySize(room *Room, kinds []int, unproven bool) {
	if len(kinds) > 0 {
		t.places = append(t.places, Place{Pool: room.Pool, New: true, AnySize: true, Unproven: unproven,
			Nodes: room.nodesOfAnySize(), Free: room.left(), Accepts: t.names(kinds)})
	}
}

// addAlike adds the new nodes of a pool whose nodes are alike. Kinds of pods for which a new one is not the same,
// because they fit on other nodes, have a place each.
func (t *stocktaking) addAlike(room *Room, kinds []int) {
	pool := t.pools[room.Pool]
	for rest := kinds; len(rest) > 0; {
		count := pool.counts[rest[0]]
		first := count.fresh.without(pool.coming)
		differs := func(i int) bool {
			return pool.counts[i] != count && !pool.counts[i].fresh.without(pool.coming).equal(first)
		}
		same := slices.DeleteFunc(slices.Clone(rest), differs)
		cards := first.cards()
		t.places = append(t.places, Place{Pool: room.Pool, New: true, Nodes: room.MayAddNodes,
			SameNodes: len(same) < len(kinds), Free: first.has, Devices: leastDevices(first.nodes),
			Cards: t.inPercent(cards.cards), CardOrder: cards.order, Accepts: t.names(same), Like: first.likeName()})
		rest = slices.DeleteFunc(slices.Clone(rest), func(i int) bool { return slices.Contains(same, i) })
	}
}

// left returns what new nodes may have in total within the limits.
func (r *Room) left() Quantities {
	free := Quantities{}
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
