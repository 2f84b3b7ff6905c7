package landing

import (
	"math"
	"slices"
	"sync/atomic"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// bin is what is left of one node, or of a pool that adds nodes of any size. It is immutable but for what it remembers;
// states share it.
type bin struct {
	place int
	// free is by resource; unlimited marks a resource that does not bound.
	free  []raydemand.Amount
	cards []run
	// devices is by the draws of the place.
	devices []int64
	// rooms is how many pods of each kind fit if no others are placed.
	rooms []int64
	// holds is how many pods of each kind are on the node; nil if no kind has rules.
	holds []int64
	// rank orders bins by preference, the lowest first.
	rank rank
	// opened: the node does not exist yet, and pods have been placed on it.
	opened bool
	// took is what made the bin of another one, and next is one that was made of it. A plan places the same pods again
	// and again.
	took taking
	next atomic.Pointer[bin]
}

// taking is a number of pods of a kind.
type taking struct {
	kind int
	pods int64
}

const unlimited raydemand.Amount = math.MaxInt64

// rank is the preference of a bin: nodes that exist before new ones that are in use before others, nodes that may have
// no room last, then those that the fewest kinds of pods can use, then the fullest.
type rank struct {
	tier  int8
	kinds int32
	left  int64
}

func (r rank) before(other rank) bool {
	switch {
	case r.tier != other.tier:
		return r.tier < other.tier
	case r.kinds != other.kinds:
		return r.kinds < other.kinds
	}
	return r.left < other.left
}

func (b *bin) before(other *bin) bool {
	return b.rank.before(other.rank) || b.rank == other.rank && b.place < other.place
}

func (p *Packer) emptyBin(place *Place, at int) *bin {
	b := &bin{place: at, free: make([]raydemand.Amount, len(p.resources)), cards: runsOf(place)}
	for name, r := range p.resources {
		amount, known := place.Free[name]
		switch {
		case known:
			b.free[r] = max(amount, 0)
		case place.AnySize || name == podSlots:
			b.free[r] = unlimited
		}
	}
	return b
}

// finish fills in what follows from what is left.
func (p *Packer) finish(b *bin) {
	s := &p.places[b.place]
	b.rooms = make([]int64, len(p.kinds))
	for k := range p.kinds {
		if !s.accepts[k] {
			continue
		}
		b.rooms[k] = p.room(b, k)
		if b.holds != nil && !s.anySize {
			b.rooms[k] = p.kinds[k].rules.onNode(k, b.holds, b.rooms[k])
		}
		if b.rooms[k] > 0 {
			b.rank.kinds++
		}
	}
	b.rank.left = p.left(b)
	switch {
	case !s.isNew:
	case s.unproven:
		b.rank.tier = 4
	case b.opened:
		b.rank.tier = 1
	case s.unbounded || s.anySize:
		b.rank.tier = 3
	default:
		b.rank.tier = 2
	}
}

// left adds up what is left of a node as parts of the largest node's, in 1/1024. Extended resources and cards count
// most, because a node without them left is of no use to pods that need them.
func (p *Packer) left(b *bin) int64 {
	const part, weight = 1 << 10, 1 << 6
	var sum int64
	for r, amount := range b.free {
		if r == 0 || amount == unlimited || p.most[r] <= 0 {
			continue
		}
		n := int64(float64(amount) / float64(p.most[r]) * part)
		if p.extended[r] {
			n *= weight
		}
		sum += n
	}
	return sum + leftOfCards(b.cards)*weight
}

// room returns how many pods of the kind fit.
func (k *kind) room(b *bin, order string) int64 {
	n := int64(Unbounded)
	for _, r := range k.requests {
		if free := b.free[r.resource]; free != unlimited {
			n = min(n, int64(free/r.amount))
		}
	}
	if n > 0 && k.cards != nil && b.cards != nil {
		n = k.cards.room(b.cards, order, n)
	}
	return n
}

// take returns the bin with n more pods of a kind, of which it has room for as many.
func (p *Packer) take(b *bin, k int, n int64) *bin {
	took := taking{k, n}
	if known := b.next.Load(); known != nil && known.took == took {
		return known
	}
	opened := p.places[b.place].isNew
	after := &bin{took: took, place: b.place, free: slices.Clone(b.free), cards: b.cards, opened: opened}
	kind := &p.kinds[k]
	for _, r := range kind.requests {
		if free := &after.free[r.resource]; *free != unlimited {
			*free -= r.amount.Times(n)
		}
	}
	if kind.cards != nil && b.cards != nil {
		after.cards = kind.cards.take(b.cards, p.places[b.place].order, n)
	}
	after.devices = b.devices
	if len(b.devices) > 0 {
		after.devices = slices.Clone(b.devices)
		for i, d := range p.places[b.place].draws {
			after.devices[i] -= d.takes[k] * n
		}
	}
	if b.holds != nil {
		after.holds = slices.Clone(b.holds)
		after.holds[k] += n
	}
	p.finish(after)
	b.next.Store(after)
	return after
}

// equal reports whether both are the same for all pods.
func (b *bin) equal(other *bin) bool {
	return b.place == other.place && b.rank == other.rank && b.opened == other.opened &&
		slices.Equal(b.free, other.free) && slices.Equal(b.cards, other.cards) &&
		slices.Equal(b.devices, other.devices) && slices.Equal(b.holds, other.holds)
}
