package landing

import (
	"maps"
	"slices"
	"strconv"
)

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
	p.free = maps.Clone(p.free)
	if p.cards != nil {
		p.cards = single(p.cards)
	}
	for i := range t.kinds {
		n := p.holds[t.kinds[i].Name]
		if n == 0 {
			continue
		}
		p.free.take(t.kinds[i].Requests, n)
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
