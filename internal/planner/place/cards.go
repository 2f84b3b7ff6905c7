package place

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Ray assigns a fraction of a GPU on one card, and whole GPUs as cards without any use
// (docs/reference/facts.md#parts-of-cards): two cards take four actors of 0.4, not five. So if some demand asks for a
// fraction of such a resource, a vector has slots after its named amounts for what is free on the partly used cards.
// The rest of what is free is on unused cards.

// maxPartial is how many partly used cards of one node are distinguished. Free amounts on further cards, smallest
// first, count as used.
const maxPartial = 16

// mostPieced is how many bundles of several pieces are tried on a node.
const mostPieced = 4096

// cards is a resource of which some demand asks for a fraction.
type cards struct {
	resource int
	// first and slots locate the partly used cards in a vector, those with the most free in front; 0 means none.
	first, slots int
	// sizes are the fractions in the demand, largest first.
	sizes []raydemand.Amount
}

// pieces is how one bundle asks for cards: a number of whole cards, and fractions on one card each, largest first.
type pieces struct {
	*cards
	whole raydemand.Amount
	parts []raydemand.Amount
	// refused is an amount above one that is not whole. Ray starts no work that asks for it, so it fits nowhere.
	refused raydemand.Amount
}

// piecesOf splits an amount.
func (k *cards) piecesOf(amount raydemand.Amount) *pieces {
	part := amount % raydemand.One
	switch p := (&pieces{cards: k}); {
	case part == 0:
		p.whole = amount
		return p
	case amount > raydemand.One:
		p.refused = amount
		return p
	default:
		p.parts = []raydemand.Amount{part}
		return p
	}
}

// single returns the requested fraction if it is the only piece, else 0.
func (p *pieces) single() raydemand.Amount {
	if p.whole > 0 || len(p.parts) != 1 {
		return 0
	}
	return p.parts[0]
}

// newCards finds the resources that must be counted by card.
func (c *Catalog) newCards(s *model.Snapshot) {
	sizes := map[string]map[raydemand.Amount]bool{}
	s.EachBundle(func(b raydemand.Bundle) {
		for name, amount := range b {
			if part := amount % raydemand.One; part > 0 && raydemand.IsUnitInstance(name) {
				if sizes[name] == nil {
					sizes[name] = map[raydemand.Amount]bool{}
				}
				sizes[name][part] = true
			}
		}
	})
	refused := func(n *model.Node) {
		for name := range n.Refused {
			if _, known := c.Index[name]; known && sizes[name] == nil && raydemand.IsUnitInstance(name) {
				sizes[name] = map[raydemand.Amount]bool{}
			}
		}
	}
	for i := range s.Nodes {
		refused(&s.Nodes[i])
	}
	if s.Head != nil {
		refused(s.Head)
	}
	c.cardsOf = make([]*cards, len(c.Names))
	width := len(c.Names)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		made := &cards{resource: c.Index[name], first: width, slots: mostCards(s, name)}
		made.sizes = slices.SortedFunc(maps.Keys(sizes[name]), func(a, b raydemand.Amount) int { return int(b - a) })
		c.cards, c.cardsOf[made.resource] = append(c.cards, made), made
		width += made.slots
	}
	c.width = width
}

// mostCards returns the largest number of cards of a resource on one node, from 1 to maxPartial.
func mostCards(s *model.Snapshot, name string) int {
	most := raydemand.One
	for i := range s.Groups {
		most = max(most, s.Groups[i].Resources.Has(name))
	}
	for i := range s.Nodes {
		most = max(most, s.Nodes[i].Total.Has(name), s.Nodes[i].Resources.Has(name))
	}
	if s.Head != nil {
		most = max(most, s.Head.Total.Has(name), s.Head.Resources.Has(name))
	}
	most = min(most, maxPartial*raydemand.One)
	return int((most + raydemand.One - 1) / raydemand.One)
}

// Named returns the amounts by resource, without those of single cards.
func (c *Catalog) Named(v Vector) Vector { return v[:len(c.Names)] }

// partly returns the partly used cards, those with the most free first.
func (v Vector) partly(c *cards) Vector { return v[c.first : c.first+c.slots] }

// unused counts the cards without any use.
func (v Vector) unused(c *cards) int64 {
	rest := v[c.resource]
	for _, free := range v.partly(c) {
		rest -= free
	}
	return int64(rest / raydemand.One)
}

// timesOnCards returns how often the pieces fit on the cards, up to limit.
func (v Vector) timesOnCards(p *pieces, limit int64) int64 {
	if p.refused > 0 {
		return 0
	}
	if len(p.parts) == 0 {
		return min(limit, v.unused(p.cards)/int64(p.whole/raydemand.One))
	}
	if part := p.single(); part > 0 {
		n := v.unused(p.cards)
		if n >= limit {
			return limit
		}
		n *= int64(raydemand.One / part)
		for _, free := range v.partly(p.cards) {
			n += int64(free / part)
		}
		return min(limit, n)
	}
	if v.unused(p.cards) < int64(p.whole/raydemand.One) {
		return 0
	}
	var space [48]raydemand.Amount // most vectors are shorter
	trial := append(Vector(space[:0]), v...)
	limit = min(limit, mostPieced)
	for n := range limit {
		if !trial.takePieces(p) {
			return n
		}
	}
	return limit
}

// takeFromCards takes the pieces n times. The caller knows that they fit.
func (v Vector) takeFromCards(p *pieces, n int64) {
	if len(p.parts) == 0 {
		v[p.resource] -= p.whole * raydemand.Amount(n)
		return
	}
	if part := p.single(); part > 0 {
		v.takeParts(p.cards, part, n)
		return
	}
	for range n {
		v.takePieces(p)
	}
}

// takePieces takes the pieces once and reports whether they fit. If they do not, it takes some of them anyway.
func (v Vector) takePieces(p *pieces) bool {
	if v.unused(p.cards) < int64(p.whole/raydemand.One) {
		return false
	}
	v[p.resource] -= p.whole
	for _, part := range p.parts {
		if v.timesOnCards(&pieces{cards: p.cards, parts: []raydemand.Amount{part}}, 1) == 0 {
			return false
		}
		v.takeParts(p.cards, part, 1)
	}
	return true
}

// takeParts takes a fraction n times as Ray does: each from the card with the least free that has enough, card after
// card.
func (v Vector) takeParts(c *cards, part raydemand.Amount, n int64) {
	partly := v.partly(c)
	for i := len(partly) - 1; i >= 0 && n > 0; i-- {
		count := min(n, int64(partly[i]/part))
		partly[i] -= part * raydemand.Amount(count)
		v[c.resource] -= part * raydemand.Amount(count)
		n -= count
	}
	slices.SortFunc(partly, func(a, b raydemand.Amount) int { return int(b - a) })
	if n == 0 {
		return
	}
	each := int64(raydemand.One / part)
	v[c.resource] -= part * raydemand.Amount(n)
	v.open(c, raydemand.One-part*raydemand.Amount(each), n/each)
	if last := n % each; last > 0 {
		v.open(c, raydemand.One-part*raydemand.Amount(last), 1)
	}
}

// open records a free amount on a number of cards. Beyond the cards that can be distinguished, it drops the smallest.
func (v Vector) open(c *cards, free raydemand.Amount, count int64) {
	partly := v.partly(c)
	for ; count > 0 && free > 0; count-- {
		last := &partly[len(partly)-1]
		if *last >= free {
			v[c.resource] -= free * raydemand.Amount(count)
			return
		}
		v[c.resource] -= *last
		*last = free
		slices.SortFunc(partly, func(a, b raydemand.Amount) int { return int(b - a) })
	}
}

// assumeLayout assumes how a node's free amount is spread over its cards, because Ray reports only the sum. It assumes
// whole free cards, with the remainder on one card. But if what is in use can be whole cards and fractions of a size in
// the demand, then it assumes that these were placed as Ray places them.
//
// A refused amount contradicts that: no card has that much free, or not enough cards are unused. Then it assumes that
// what is free is on as few cards as that allows.
func (c *Catalog) assumeLayout(free, total Vector, refused raydemand.Bundle) {
	for _, k := range c.cards {
		clear(free.partly(k))
		if least := refused.Has(c.Names[k.resource]); least > 0 && k.scatter(free, total, least) {
			continue
		}
		rest := free[k.resource] % raydemand.One
		if rest == 0 {
			continue
		}
		free.partly(k)[0] = rest
		for _, size := range k.sizes {
			if v, ok := k.filled(total, total[k.resource]-free[k.resource], size); ok {
				copy(free.partly(k), v.partly(k))
				free[k.resource] = v[k.resource]
				break
			}
		}
	}
}

// scatter spreads what is free so that the smallest refused amount does not fit. It reports false if the sum alone
// proves that the amount fits; then it waits for another reason.
func (k *cards) scatter(free, total Vector, refused raydemand.Amount) bool {
	most := raydemand.One - 1 // on one partly used card
	whole := (refused+raydemand.One-1)/raydemand.One - 1
	if refused < raydemand.One {
		most, whole = refused-1, 0
	}
	sum := free[k.resource]
	whole = min(whole, sum/raydemand.One)
	count := total[k.resource]/raydemand.One - whole
	rest := sum - whole*raydemand.One
	if most <= 0 || rest > count*most {
		return false
	}
	free.open(k, most, int64(rest/most))
	free.open(k, rest%most, 1)
	return true
}

// filled is a node with this much in use: as many fractions of one size as make up the amount, the rest whole cards.
func (k *cards) filled(total Vector, used, size raydemand.Amount) (Vector, bool) {
	// after one card for each of its units, a fraction returns to the same remainder
	whole := min(used/raydemand.One, size)
	for w := raydemand.Amount(0); w <= whole; w++ {
		parts := used - w*raydemand.One
		if parts%size != 0 {
			continue
		}
		v := slices.Clone(total)
		v[k.resource] -= w * raydemand.One
		p := &pieces{cards: k, parts: []raydemand.Amount{size}}
		n := int64(parts / size)
		if v.timesOnCards(p, n) < n {
			continue
		}
		v.takeParts(k, size, n)
		return v, true
	}
	return nil, false
}

// strictlyPacked gives an item that stands for several bundles on one node the pieces of each bundle.
func (c *Catalog) strictlyPacked(it *Item, bundles []raydemand.Bundle) {
	for i := range it.Need {
		t := &it.Need[i]
		if t.Pieces == nil {
			continue
		}
		all := &pieces{cards: t.Pieces.cards}
		for _, b := range bundles {
			each := all.piecesOf(max(b.Has(c.Names[t.Resource]), 0))
			all.whole += min(each.whole, math.MaxInt64-all.whole)
			all.parts = append(all.parts, each.parts...)
			all.refused = max(all.refused, each.refused)
		}
		slices.SortFunc(all.parts, func(a, b raydemand.Amount) int { return int(b - a) })
		t.Pieces = all
		it.Key += all.key()
	}
}

// Needs returns, for example, needs GPU 0.6 + 0.6 + 0.6, each part on one card.
func (p *pieces) Needs(name string) string {
	if p.refused > 0 {
		return fmt.Sprintf("needs %s %s, and Ray refuses amounts of %s above 1 that are not whole",
			p.refused, name, name)
	}
	const most = 8
	var all []string
	if p.whole > 0 {
		all = append(all, p.whole.String())
	}
	for _, part := range p.parts {
		if len(all) == most {
			all = append(all, "…")
			break
		}
		all = append(all, part.String())
	}
	return fmt.Sprintf("needs %s %s, each part on one card", name, strings.Join(all, " + "))
}

// key distinguishes pieces with the same sum.
func (p *pieces) key() string {
	key := []byte("\x00cards")
	for _, part := range p.parts {
		key = append(key, " "+part.String()...)
	}
	return string(key)
}
