package landing

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Kind is the pods of one worker group: what they take, and on which nodes they may be scheduled.
type Kind struct {
	Pod
	Shape *PodShape
	// Class is the shape's. Kinds of one class are compared with nodes once; a zero Class is unknown.
	Class Key
}

// Ask is a question about Nodes: where pods of some kinds may run. It is immutable.
type Ask struct {
	// Pods are those of the kinds with the constraints between them and pods on nodes.
	Pods  []Pod
	stock *Nodes
	kinds []Kind
	// holds counts by node the pods on it that a constraint counts, by the name of their kind.
	holds map[string]map[string]int64
	// constrained: there are constraints between pods.
	constrained bool
}

// Ask asks where pods of these kinds may run.
func (s *Nodes) Ask(kinds []Kind) Ask {
	a := Ask{stock: s, kinds: kinds}
	a.Pods, a.holds = s.constrain(kinds)
	a.constrained = slices.ContainsFunc(a.Pods, func(p Pod) bool { return len(p.Apart) > 0 })
	return a
}

// Places is Ask with its answer.
func (s *Nodes) Places(kinds []Kind) ([]Place, []Pod) {
	a := s.Ask(kinds)
	return a.Places(), a.Pods
}

// Key is equal for questions about the same Nodes that have the same answer. It is false if the answer depends on more
// than the names and classes of the kinds: on pods that are on nodes.
func (a Ask) Key() (key Key, alike bool) {
	if a.constrained {
		return key, false
	}
	text := make([]byte, 0, len(a.kinds)*(len(key)+16))
	for i := range a.kinds {
		if a.kinds[i].Class == (Key{}) {
			return key, false
		}
		text = append(strconv.AppendQuote(text, a.kinds[i].Name), a.kinds[i].Class[:]...)
	}
	return sha256.Sum256(text), true
}

// Places returns where the pods may run: existing nodes with what is free on them, then what each pool may still add. A
// kind that no place accepts fits no known node and no pool.
func (a Ask) Places() []Place {
	t := &stocktaking{Ask: a, like: likes(a.kinds), pools: make(map[string][]*poolView, len(a.stock.Rooms)),
		coming: map[*Node]bool{}}
	t.markHeld()
	for i := range a.stock.Rooms {
		room := &a.stock.Rooms[i]
		views := make([]*poolView, len(a.kinds))
		for k, first := range t.like {
			if views[k] = views[first]; first == k {
				views[k] = &poolView{room: room}
			}
		}
		t.pools[room.Pool] = views
	}
	shapes := make([]*PodShape, len(a.kinds))
	for i := range a.kinds {
		shapes[i] = a.kinds[i].Shape
	}
	for _, kind := range a.stock.kindsFor(shapes) {
		t.look(kind)
	}
	for i := range t.entries {
		t.addExisting(&t.entries[i])
	}
	for i := range a.stock.Rooms {
		t.addNew(&a.stock.Rooms[i])
	}
	t.wholeReplicas()
	return slices.Clone(t.places)
}

// Merge returns the kinds without those after the given number that an earlier one of them is equal to: of the same
// class, and no constraint between pods concerns either. like is for each of the old kinds the position of its own.
func (a Ask) Merge(after int) (kinds []Kind, like []int) {
	concerned := a.concerned()
	first := map[Key]int{}
	for i, kind := range a.kinds {
		free := i >= after && !concerned[kind.Name] && kind.Class != (Key{})
		if at, known := first[kind.Class]; free && known {
			like = append(like, at)
			continue
		}
		if free {
			first[kind.Class] = len(kinds)
		}
		like, kinds = append(like, len(kinds)), append(kinds, kind)
	}
	return kinds, like
}

// Unconstrained reports whether pods of a shape keep no pods from nodes, and no pod on a node may keep them away. If
// this holds for all shapes of a question, those of one class are alike.
func (s *Nodes) Unconstrained(shape *PodShape) bool {
	return len(s.repelling) == 0 && !shape.Neighbors.constrain()
}

// concerned returns the kinds that have constraints between pods, or that those of others name.
func (a Ask) concerned() map[string]bool {
	names := map[string]bool{}
	for i := range a.Pods {
		for _, other := range a.Pods[i].Apart {
			names[a.Pods[i].Name], names[other] = true, true
		}
	}
	return names
}

// likes returns the first kind of the class of each.
func likes(kinds []Kind) []int {
	like, first := make([]int, len(kinds)), map[Key]int{}
	for i := range kinds {
		at, known := first[kinds[i].Class]
		if like[i] = at; !known || kinds[i].Class == (Key{}) {
			like[i], first[kinds[i].Class] = i, i
		}
	}
	return like
}

func key(holds map[string]int64) string {
	var text []byte
	for _, kind := range slices.Sorted(maps.Keys(holds)) {
		text = strconv.AppendInt(strconv.AppendQuote(text, kind), holds[kind], 10)
	}
	return string(text)
}

func (t *stocktaking) markHeld() {
	if len(t.holds) == 0 {
		return
	}
	t.held = make([]bool, len(t.stock.nodes))
	positions := t.stock.byName()
	for name := range t.holds {
		if i, known := positions[name]; known {
			t.held[i] = true
		}
	}
}

// apart separates nodes that hold pods that a constraint counts from the others of a lot.
func (t *stocktaking) apart(l lot) []lot {
	nodes := t.stock.nodes
	held := func(i int) bool { return t.held[i] }
	if t.held == nil || !slices.ContainsFunc(l.members, held) {
		return []lot{l}
	}
	rest, parts := l, []lot{}
	rest.members = make([]int, 0, len(l.members))
	byHolds := map[string]int{}
	for _, i := range l.members {
		if !held(i) {
			rest.members = append(rest.members, i)
			continue
		}
		holds := t.holds[nodes[i].Name]
		text := key(holds)
		at, known := byHolds[text]
		if !known {
			at, byHolds[text] = len(parts), len(parts)
			own := l
			own.members, own.holds = nil, holds
			parts = append(parts, own)
		}
		parts[at].members = append(parts[at].members, i)
	}
	if len(rest.members) > 0 {
		parts = append(parts, rest)
	}
	return parts
}

// mostSingle bounds the cards of one node that are listed one by one, far above what a node can have.
const mostSingle = 4096

func single(cards []Card) []Card {
	var all []Card
	for _, card := range cards {
		n := max(card.Count, 1)
		card.Count = 0
		for range min(n, mostSingle) {
			all = append(all, card)
		}
	}
	return all
}

// Key is equal for shapes whose pods fit on the same nodes in the same way (KeyOf), and for questions about the same
// Nodes that have the same answer (Ask.Key). The zero value is the key of nothing.
type Key [sha256.Size]byte

// KeyOf returns the key of a shape; of Neighbors, Beyond and Domain alone are compared. It takes some microseconds, so
// keep it.
func KeyOf(shape *PodShape) Key {
	own := *shape
	own.Share, own.Neighbors = nil, Neighbors{Beyond: shape.Neighbors.Beyond, Domain: shape.Neighbors.Domain}
	if own.Neighbors.Domain.Key != "" {
		own.Neighbors.Namespace = shape.Neighbors.Namespace
	}
	text := fmt.Sprintf("%#v", own)
	if shape.Share != nil {
		text += fmt.Sprintf("%#v", *shape.Share)
	}
	return sha256.Sum256([]byte(text))
}

// stocktaking collects the places of some kinds of pods.
type stocktaking struct {
	Ask
	// like is the first kind of each kind's class.
	like []int
	// held marks by position the nodes with entries in holds; nil if there are none.
	held []bool
	// pools is what the nodes of each pool show about each kind of pods, and about a new node; kinds of one class share
	// theirs. coming are nodes that have not announced all that others of their type have.
	pools  map[string][]*poolView
	coming map[*Node]bool
	// entries are nodes that accept a kind, places the result.
	entries []stockEntry
	places  []Place
}

// stockEntry is nodes that are the same for all kinds. accepts are the kinds of pods that may be scheduled there,
// coming those whose pods may be when the nodes have come up.
type stockEntry struct {
	equalNodes
	accepts, coming []int
}

func (t *stocktaking) look(nodes equalNodes) {
	pool := t.pools[nodes.Node.PoolName()]
	if pool == nil {
		return
	}
	entry := stockEntry{equalNodes: nodes}
	var misses []mismatch
	holds := make([]struct{ now, soon bool }, len(t.kinds))
	for i := range t.kinds {
		if holds[i] = holds[t.like[i]]; t.like[i] == i {
			misses = t.kinds[i].Shape.mismatches(nodes.Node, misses[:0])
			holds[i].now, holds[i].soon = pool[i].add(t.kinds[i].Shape, nodes.Node, misses)
		}
		switch {
		case holds[i].now:
			entry.accepts = append(entry.accepts, i)
		case holds[i].soon:
			entry.coming = append(entry.coming, i)
		}
	}
	if len(nodes.Members) > 0 && len(entry.accepts)+len(entry.coming) > 0 {
		t.entries = append(t.entries, entry)
	}
}

// addExisting adds the nodes of an entry, those with equally much free as one place.
func (t *stocktaking) addExisting(entry *stockEntry) {
	accepts, like := t.soon(entry)
	if like != nil {
		t.coming[entry.Node] = true
	}
	names := t.names(accepts)
	for _, l := range t.stock.lotsOf(entry.equalNodes) {
		if like != nil {
			l = l.as(like)
		}
		for _, part := range t.apart(l) {
			if !t.anyFits(accepts, part.free) {
				continue
			}
			nodes, first := int64(len(part.members)), &t.stock.nodes[part.members[0]]
			t.places = append(t.places, Place{
				Pool: entry.Node.Pool, Node: first.Name, Nodes: &nodes, Free: part.free, Devices: part.devices,
				Cards: t.refused(t.inPercent(part.cards), first, accepts), CardOrder: part.order, Accepts: names,
				Holds: part.holds,
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
		least := t.pools[entry.Node.PoolName()][i].byType[kind]
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
		l.cards, l.order = newCards(like)
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
			cards[i].Total, cards[i].Memory = 100, new(int64(100))
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
	known := slices.DeleteFunc(slices.Clone(node.GPUs.PerCard), func(c sharing.Card) bool { return !c.Usable() })
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
		count := pool[i]
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
		count := pool[rest[0]]
		first := count.fresh.without(t.coming)
		differs := func(i int) bool {
			return pool[i] != count && !pool[i].fresh.without(t.coming).equal(first)
		}
		same := slices.DeleteFunc(slices.Clone(rest), differs)
		cards, order := first.cards()
		t.places = append(t.places, Place{Pool: room.Pool, New: true, Nodes: room.MayAddNodes,
			SameNodes: len(same) < len(kinds), Free: first.has, Devices: leastDevices(first.nodes),
			Cards: t.inPercent(cards), CardOrder: order, Accepts: t.names(same)})
		rest = slices.DeleteFunc(slices.Clone(rest), func(i int) bool { return slices.Contains(same, i) })
	}
}

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
