package raydemand

import (
	"math"
	"slices"
)

// Ray assigns a fraction of a unit-instance resource, such as GPU, on one card, and whole units as cards without any
// use (docs/reference/facts.md#parts-of-cards): two cards take four actors of 0.4, not five.

// Cards is what is free of one unit-instance resource on the cards of a node.
type Cards struct {
	// Free is the sum over all cards.
	Free *Amount
	// Partly is what is free on the partly used cards, the most in front; 0 means no card. The rest of Free is on
	// unused cards. Its length is how many partly used cards are distinguished: further ones, those with the least
	// free, count as used.
	Partly []Amount
}

// Pieces is how work asks for cards.
type Pieces struct {
	// Whole is a number of whole cards.
	Whole Amount
	// Parts are fractions on one card each, largest first.
	Parts []Amount
	// Refused is an amount above one that is not whole. Ray starts no work that asks for it, so it fits nowhere.
	Refused Amount
}

// PiecesOf splits an amount.
func PiecesOf(amount Amount) Pieces {
	switch part := amount % One; {
	case part == 0:
		return Pieces{Whole: amount}
	case amount > One:
		return Pieces{Refused: amount}
	default:
		return Pieces{Parts: []Amount{part}}
	}
}

// Add adds the pieces of further work on the same node.
func (p *Pieces) Add(more Pieces) {
	p.Whole += min(more.Whole, math.MaxInt64-p.Whole)
	p.Parts = append(p.Parts, more.Parts...)
	slices.SortFunc(p.Parts, mostFirst)
	p.Refused = max(p.Refused, more.Refused)
}

func mostFirst(a, b Amount) int { return int(b - a) }

// single returns the requested fraction if it is the only piece, else 0.
func (p *Pieces) single() Amount {
	if p.Whole > 0 || len(p.Parts) != 1 {
		return 0
	}
	return p.Parts[0]
}

// unused counts the cards without any use.
func (c Cards) unused() int64 {
	rest := *c.Free
	for _, free := range c.Partly {
		rest -= free
	}
	return int64(rest / One)
}

// mostPieced is how many bundles of several pieces are tried on a node.
const mostPieced = 4096

// Times returns how often the pieces fit, up to limit.
func (c Cards) Times(p *Pieces, limit int64) int64 {
	if p.Refused > 0 {
		return 0
	}
	if len(p.Parts) == 0 {
		return min(limit, c.unused()/int64(p.Whole/One))
	}
	if part := p.single(); part > 0 {
		n := c.unused()
		if n >= limit {
			return limit
		}
		n *= int64(One / part)
		for _, free := range c.Partly {
			n += int64(free / part)
		}
		return min(limit, n)
	}
	if c.unused() < int64(p.Whole/One) {
		return 0
	}
	var space [16]Amount // most nodes have fewer cards
	free := *c.Free
	trial := Cards{&free, append(space[:0], c.Partly...)}
	limit = min(limit, mostPieced)
	for n := range limit {
		if !trial.takeOnce(p) {
			return n
		}
	}
	return limit
}

// Take takes the pieces n times. The caller knows that they fit.
func (c Cards) Take(p *Pieces, n int64) {
	if len(p.Parts) == 0 {
		*c.Free -= p.Whole * Amount(n)
		return
	}
	if part := p.single(); part > 0 {
		c.takeParts(part, n)
		return
	}
	for range n {
		c.takeOnce(p)
	}
}

// takeOnce takes the pieces once and reports whether they fit. If they do not, it takes some of them anyway.
func (c Cards) takeOnce(p *Pieces) bool {
	if c.unused() < int64(p.Whole/One) {
		return false
	}
	*c.Free -= p.Whole
	for _, part := range p.Parts {
		if c.Times(&Pieces{Parts: []Amount{part}}, 1) == 0 {
			return false
		}
		c.takeParts(part, 1)
	}
	return true
}

// takeParts takes a fraction n times as Ray does: each from the card with the least free that has enough, card after
// card.
func (c Cards) takeParts(part Amount, n int64) {
	for i := len(c.Partly) - 1; i >= 0 && n > 0; i-- {
		count := min(n, int64(c.Partly[i]/part))
		c.Partly[i] -= part * Amount(count)
		*c.Free -= part * Amount(count)
		n -= count
	}
	slices.SortFunc(c.Partly, mostFirst)
	if n == 0 {
		return
	}
	each := int64(One / part)
	*c.Free -= part * Amount(n)
	c.open(One-part*Amount(each), n/each)
	if last := n % each; last > 0 {
		c.open(One-part*Amount(last), 1)
	}
}

// open records a free amount on a number of cards. Beyond the cards that can be distinguished, it drops the smallest.
func (c Cards) open(free Amount, count int64) {
	for ; count > 0 && free > 0; count-- {
		last := &c.Partly[len(c.Partly)-1]
		if *last >= free {
			*c.Free -= free * Amount(count)
			return
		}
		*c.Free -= *last
		*last = free
		slices.SortFunc(c.Partly, mostFirst)
	}
}

// Assume assumes how the sum is spread over the cards of a node that has a total, because Ray reports only the sum. It
// assumes whole free cards, with the remainder on one card. But if what is in use can be whole cards and fractions of
// one of some sizes, then it assumes that these were placed as Ray places them.
//
// A refused amount, 0 if there is none, contradicts that: no card has that much free, or not enough cards are unused.
// Then it assumes that what is free is on as few cards as that allows.
func (c Cards) Assume(total Amount, sizes []Amount, refused Amount) {
	clear(c.Partly)
	if refused > 0 && c.scatter(total, refused) {
		return
	}
	rest := *c.Free % One
	if rest == 0 {
		return
	}
	c.Partly[0] = rest
	for _, size := range sizes {
		if c.fill(total, total-*c.Free, size) {
			return
		}
	}
}

// scatter spreads what is free so that the smallest refused amount does not fit. It reports false if the sum alone
// proves that the amount fits; then it waits for another reason.
func (c Cards) scatter(total, refused Amount) bool {
	most := One - 1 // on one partly used card
	whole := (refused+One-1)/One - 1
	if refused < One {
		most, whole = refused-1, 0
	}
	sum := *c.Free
	whole = min(whole, sum/One)
	count := total/One - whole
	rest := sum - whole*One
	if most <= 0 || rest > count*most {
		return false
	}
	c.open(most, int64(rest/most))
	c.open(rest%most, 1)
	return true
}

// fill spreads an amount that is in use as fractions of one size, as many as possible, the rest whole cards. It reports
// false, and changes nothing, if the amount cannot be that.
func (c Cards) fill(total, used, size Amount) bool {
	// after one card for each of its units, a fraction returns to the same remainder
	for whole := range min(used/One, size) + 1 {
		parts := used - whole*One
		if parts%size != 0 {
			continue
		}
		free := total - whole*One
		v := Cards{&free, make([]Amount, len(c.Partly))}
		v.Partly[0] = total % One
		n := int64(parts / size)
		if v.Times(&Pieces{Parts: []Amount{size}}, n) < n {
			continue
		}
		v.takeParts(size, n)
		copy(c.Partly, v.Partly)
		*c.Free = free
		return true
	}
	return false
}
