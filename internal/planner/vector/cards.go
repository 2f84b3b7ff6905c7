package vector

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Ray gives a part of a GPU on one card, and whole GPUs as cards of which nothing is in use
// (docs/reference/facts.md#parts-of-cards): two cards take four actors of 0.4 and not five. So where some demand asks
// for a part of such a resource, a vector has places behind its named amounts in which it says what is free on the
// cards that are partly in use. What is free beyond those is on cards that are not in use.

// maxPartial is how many partly used cards of one node are distinguished. What is free on further ones, the least
// first, counts as in use.
const maxPartial = 16

// mostPieced is how many bundles of several pieces a node is tried for at most.
const mostPieced = 4096

// cards is a resource of which some demand asks for a part.
type cards struct {
	resource int
	// first and slots say where in a vector the cards partly in use stand, those with most free in front; 0 is none.
	first, slots int
	// sizes are the parts that demand asks for, largest first.
	sizes []raydemand.Amount
}

// pieces is how one bundle asks for cards: so much of whole ones, and parts that each lie on one card, largest first.
type pieces struct {
	*cards
	whole raydemand.Amount
	Parts []raydemand.Amount
}

// piecesOf cuts an amount: Ray refuses what is more than one and not whole, so only request_resources can ask for it.
func (k *cards) piecesOf(amount raydemand.Amount) *pieces {
	part := amount % raydemand.One
	p := &pieces{cards: k, whole: amount - part}
	if part > 0 {
		p.Parts = []raydemand.Amount{part}
	}
	return p
}

// single is the part that is asked for where it is the only piece, else 0.
func (p *pieces) single() raydemand.Amount {
	if p.whole > 0 || len(p.Parts) != 1 {
		return 0
	}
	return p.Parts[0]
}

// newCards finds what has to be counted by the card.
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
	c.Width = width
}

// mostCards is how many cards of a resource one node has at most, from 1 to maxPartial.
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

// Named are the amounts by resource, without those of single cards.
func (c *Catalog) Named(v Vector) Vector { return v[:len(c.Names)] }

// partly are the cards partly in use, those with most free first.
func (v Vector) partly(c *cards) Vector { return v[c.first : c.first+c.slots] }

// unused counts the cards of which nothing is in use.
func (v Vector) unused(c *cards) int64 {
	rest := v[c.resource]
	for _, free := range v.partly(c) {
		rest -= free
	}
	return int64(rest / raydemand.One)
}

// timesOnCards is how often the pieces fit on the cards, at most limit times.
func (v Vector) timesOnCards(p *pieces, limit int64) int64 {
	if len(p.Parts) == 0 {
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
	trial := slices.Clone(v)
	limit = min(limit, mostPieced)
	for n := range limit {
		if !trial.takePieces(p) {
			return n
		}
	}
	return limit
}

// takeFromCards takes the pieces n times, which the caller knows to fit.
func (v Vector) takeFromCards(p *pieces, n int64) {
	if len(p.Parts) == 0 {
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

// takePieces takes the pieces once and reports whether they fit; if not, some of them are taken all the same.
func (v Vector) takePieces(p *pieces) bool {
	if v.unused(p.cards) < int64(p.whole/raydemand.One) {
		return false
	}
	v[p.resource] -= p.whole
	for _, part := range p.Parts {
		if v.timesOnCards(&pieces{cards: p.cards, Parts: []raydemand.Amount{part}}, 1) == 0 {
			return false
		}
		v.takeParts(p.cards, part, 1)
	}
	return true
}

// takeParts takes a part n times as Ray does: each from the card with least free that has as much, so card after card.
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

// open notes that on a number of cards so much is left free. Beyond the cards that can be distinguished the least is
// given up.
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

// AssumeLayout says how what is free on a node lies on its cards, of which Ray reports the sum alone. Whole cards are
// free as far as the sum is whole and the rest is on one card, unless what is in use can be whole cards and parts of a
// size that demand asks for: then those were placed as Ray places them.
//
// What was refused contradicts that: no card has so much free, or fewer than so many have nothing in use. Then what is
// free is presumed on as few cards as that allows.
func (c *Catalog) AssumeLayout(free, total Vector, refused raydemand.Bundle) {
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

// scatter puts what is free on cards so that the least amount that was refused has no place. It reports false where the
// sum alone shows that it would have one: then it waits for another reason.
func (k *cards) scatter(free, total Vector, refused raydemand.Amount) bool {
	most := raydemand.One - 1 // on one card partly in use
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

// filled is a node on which so much is in use: as many parts of one size as make up the amount, the rest whole cards.
func (k *cards) filled(total Vector, used, size raydemand.Amount) (Vector, bool) {
	whole := min(used/raydemand.One, size) // with one card for each of its units a part comes back to the same remainder
	for w := raydemand.Amount(0); w <= whole; w++ {
		parts := used - w*raydemand.One
		if parts%size != 0 {
			continue
		}
		v := slices.Clone(total)
		v[k.resource] -= w * raydemand.One
		p := &pieces{cards: k, Parts: []raydemand.Amount{size}}
		n := int64(parts / size)
		if v.timesOnCards(p, n) < n {
			continue
		}
		v.takeParts(k, size, n)
		return v, true
	}
	return nil, false
}

// StrictlyPacked gives an item that stands for several bundles on one node the pieces of each of them.
func (c *Catalog) StrictlyPacked(it *Item, bundles []raydemand.Bundle) {
	for i := range it.Need {
		t := &it.Need[i]
		if t.Pieces == nil {
			continue
		}
		all := &pieces{cards: t.Pieces.cards}
		for _, b := range bundles {
			each := all.piecesOf(max(b.Has(c.Names[t.Resource]), 0))
			all.whole += min(each.whole, math.MaxInt64-all.whole)
			all.Parts = append(all.Parts, each.Parts...)
		}
		slices.SortFunc(all.Parts, func(a, b raydemand.Amount) int { return int(b - a) })
		t.Pieces = all
		it.Key += all.key()
	}
}

// Needs says which pieces are asked for: needs GPU 0.6 + 0.6 + 0.6, each part on one card.
func (p *pieces) Needs(name string) string {
	const most = 8
	var all []string
	if p.whole > 0 {
		all = append(all, p.whole.String())
	}
	for _, part := range p.Parts {
		if len(all) == most {
			all = append(all, "…")
			break
		}
		all = append(all, part.String())
	}
	return fmt.Sprintf("needs %s %s, each part on one card", name, strings.Join(all, " + "))
}

// key distinguishes pieces that are as much in sum.
func (p *pieces) key() string {
	key := []byte("\x00cards")
	for _, part := range p.Parts {
		key = append(key, " "+part.String()...)
	}
	return string(key)
}
