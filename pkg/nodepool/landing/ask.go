package landing

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	own   OnNodes
	// constrained: there are constraints between pods. They count nodes on which nothing is free.
	constrained bool
}

// Ask asks where pods of these kinds may run. own are pods of these kinds that are on nodes already.
func (s *Nodes) Ask(kinds []Kind, own OnNodes) Ask {
	a := Ask{stock: s, kinds: kinds}
	a.Pods, a.own = s.constrain(kinds, own)
	a.constrained = slices.ContainsFunc(a.Pods, func(p Pod) bool { return len(p.Apart)+len(p.Spread) > 0 })
	return a
}

// Places is Ask with its answer.
func (s *Nodes) Places(kinds []Kind, own OnNodes) ([]Place, []Pod) {
	a := s.Ask(kinds, own)
	return a.Places(), a.Pods
}

// Key is equal for questions about the same Nodes that have the same answer. It is false if the answer depends on more
// than the names and classes of the kinds: on pods that are on nodes.
func (a Ask) Key() (key Key, alike bool) {
	if a.constrained || len(a.own) > 0 {
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
	t := &stocktaking{Ask: a, like: likes(a.kinds), pools: make(map[string]*poolStock, len(a.stock.Rooms))}
	t.markHeld()
	for i := range a.stock.Rooms {
		t.pools[a.stock.Rooms[i].Pool] = t.poolStock(&a.stock.Rooms[i])
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
	add := func(own string, others []string) {
		names[own] = true
		for _, other := range others {
			names[other] = true
		}
	}
	for i := range a.Pods {
		pod := &a.Pods[i]
		if len(pod.Apart) > 0 {
			add(pod.Name, pod.Apart)
		}
		for _, spread := range pod.Spread {
			add(pod.Name, spread.Pods)
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

func (t *stocktaking) poolStock(room *Room) *poolStock {
	pool := &poolStock{counts: make([]*poolView, len(t.kinds)), coming: map[*Node]bool{}}
	for i, first := range t.like {
		if pool.counts[i] = pool.counts[first]; first == i {
			pool.counts[i] = &poolView{room: room}
		}
	}
	return pool
}

// OnNodes counts pods by the name of their node and the name of their kind.
type OnNodes map[string]map[string]int64

// Add counts a pod.
func (o OnNodes) Add(node, kind string) {
	if o[node] == nil {
		o[node] = map[string]int64{}
	}
	o[node][kind]++
}

// key is equal for nodes that hold the same.
func key(holds map[string]int64) string {
	var text []byte
	for _, kind := range slices.Sorted(maps.Keys(holds)) {
		text = strconv.AppendInt(strconv.AppendQuote(text, kind), holds[kind], 10)
	}
	return string(text)
}

// markHeld marks the nodes that hold given pods.
func (t *stocktaking) markHeld() {
	if len(t.own) == 0 {
		return
	}
	t.held = make([]bool, len(t.stock.nodes))
	positions := t.stock.byName()
	for name, holds := range t.own {
		if i, known := positions[name]; known && len(holds) > 0 {
			t.held[i] = true
		}
	}
}

// apart separates nodes that hold given pods from the others of a lot, if that makes a difference: if what pods take of
// the nodes is unknown, or a constraint between pods counts them.
func (t *stocktaking) apart(l lot) []lot {
	nodes := t.stock.nodes
	unknown := nodes[l.members[0]].Use == nil
	held := func(i int) bool { return t.held[i] }
	if t.held == nil || !unknown && !t.constrained || !slices.ContainsFunc(l.members, held) {
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
		holds := t.own[nodes[i].Name]
		text := key(holds)
		at, known := byHolds[text]
		if !known {
			at, byHolds[text] = len(parts), len(parts)
			own := l
			if own.members, own.holds = nil, holds; unknown {
				t.take(&own)
			}
			parts = append(parts, own)
		}
		parts[at].members = append(parts[at].members, i)
	}
	if len(rest.members) > 0 {
		parts = append(parts, rest)
	}
	return parts
}

// take subtracts the pods that a node holds. On which cards they are is unknown, so each goes on the first that has
// room.
func (t *stocktaking) take(p *lot) {
	p.free, p.devices = maps.Clone(p.free), slices.Clone(p.devices)
	if p.cards != nil {
		p.cards = single(p.cards)
	}
	for i := range t.kinds {
		n := p.holds[t.kinds[i].Name]
		if n == 0 {
			continue
		}
		p.free.take(t.kinds[i].Requests, n)
		for k := range p.devices {
			d := &p.devices[k]
			d.Free = max(d.Free-d.each(t.kinds[i].Requests)*n, 0)
		}
		for range min(n, maxTaken) {
			takeCards(p.cards, t.kinds[i].Cards)
		}
	}
}

// maxTaken bounds the pods of one kind whose cards are counted on one node, far above what a node can hold.
const maxTaken = 4096

// single returns the cards one by one, as copies.
func single(cards []Card) []Card {
	var all []Card
	for _, card := range cards {
		n := max(card.Count, 1)
		card.Count = 0
		for range min(n, maxTaken) {
			all = append(all, card)
		}
	}
	return all
}

// takeCards subtracts one pod from as many cards as it requests, if they have room.
func takeCards(cards []Card, ask *CardRequest) {
	if ask == nil {
		return
	}
	left := min(max(ask.Cards, 1), maxTaken)
	for i := range cards {
		for left > 0 && takeCard(&cards[i], ask) {
			if left--; !ask.Stacked && len(cards[i].Parts) == 0 {
				break
			}
		}
	}
}

// takeCard subtracts a pod's part from one card; false if it has no room.
func takeCard(card *Card, ask *CardRequest) bool {
	memory, cores, fits := ask.Of(card.Total, card.Parts)
	if !fits {
		return false
	}
	takes := []struct {
		have **int64
		want int64
	}{{&card.Memory, memory}, {&card.Cores, cores}, {&card.Slots, 1}}
	for _, take := range takes {
		if *take.have != nil && **take.have < take.want {
			return false
		}
	}
	for _, take := range takes {
		if *take.have != nil {
			*take.have = whole(**take.have - take.want)
		}
	}
	card.Used = true
	return true
}

// Key is equal for shapes whose pods fit on the same nodes in the same way (KeyOf), and for questions about the same
// Nodes that have the same answer (Ask.Key). The zero value is the key of nothing.
type Key [sha256.Size]byte

// KeyOf returns the key of a shape; of Neighbors, Beyond alone is compared. It takes some microseconds, so keep it.
func KeyOf(shape *PodShape) Key {
	own := *shape
	own.Share, own.Neighbors = nil, Neighbors{Beyond: shape.Neighbors.Beyond}
	text := fmt.Sprintf("%#v", own)
	if shape.Share != nil {
		text += fmt.Sprintf("%#v", *shape.Share)
	}
	return sha256.Sum256([]byte(text))
}
