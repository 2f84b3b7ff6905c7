package landing

import (
	"cmp"
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// run is a number of equal cards of a node. The runs of a bin stand in the order in which its scheduler chooses cards.
// An amount that is unknown is unknownAmount.
type run struct {
	count, total, memory, cores, slots int64
	used                               bool
	// rest is what is left of one card as a whole; it follows from the others.
	rest int64
	// rules is the first of the cards with the same rules about what requests take; nil if they take what they ask for.
	rules *Card
}

const unknownAmount = math.MaxInt64

func runsOf(place *Place) []run {
	if place.AnySize || len(place.Cards) == 0 {
		return nil
	}
	known := func(amount *int64) int64 {
		if amount == nil {
			return unknownAmount
		}
		return max(*amount, 0)
	}
	runs := make([]run, len(place.Cards))
	for i, c := range place.Cards {
		runs[i] = run{count: max(c.Count, 1), total: c.Total, memory: known(c.Memory), cores: known(c.Cores),
			slots: known(c.Slots), used: c.Used}
		runs[i].rest = runs[i].left()
		switch {
		case i > 0 && c.sameRules(place.Cards[i-1]):
			runs[i].rules = runs[i-1].rules
		case len(c.Parts)+len(c.Refuses) > 0:
			runs[i].rules = &place.Cards[i]
		}
	}
	if place.CardOrder == sharing.LastCard {
		slices.Reverse(runs)
	}
	return ordered(runs, place.CardOrder)
}

// ordered sorts runs by preference, in place, and joins those that are equal.
func ordered(runs []run, order string) []run {
	switch order {
	case sharing.LastCard: // They keep the order of the cards.
	case sharing.EmptiestCard:
		slices.SortFunc(runs, func(a, b run) int { return b.compare(&a) })
	default:
		slices.SortFunc(runs, func(a, b run) int { return a.compare(&b) })
	}
	joined := runs[:0]
	for _, r := range runs {
		if last := len(joined) - 1; last >= 0 && joined[last].alike(r) {
			joined[last].count += r.count
			continue
		}
		if r.count > 0 {
			joined = append(joined, r)
		}
	}
	return joined
}

func (r run) alike(other run) bool {
	r.count = other.count
	return r == other
}

// compare orders cards by what is left of them, the fullest first.
func (r *run) compare(other *run) int {
	if c := cmp.Compare(r.rest, other.rest); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(r.memory, other.memory),
		cmp.Compare(r.cores, other.cores), cmp.Compare(r.slots, other.slots), cmp.Compare(r.total, other.total))
}

// left adds up what is left of a card's memory and cores, each as a part of the card in 1/1024.
func (r run) left() int64 {
	const part = 1 << 10
	var sum int64
	if r.memory != unknownAmount && r.total > 0 {
		sum += int64(float64(r.memory) / float64(r.total) * part)
	}
	if r.cores != unknownAmount {
		sum += r.cores * part / 100
	}
	return sum
}

func leftOfCards(runs []run) (sum int64) {
	for _, r := range runs {
		sum += min(r.count, 1<<20) * r.rest
	}
	return sum
}

// Of returns what the request takes of a card with this much memory and these parts; false if no part holds it. A
// percentage of the memory takes the largest part, if no other holds it.
func (c *CardRequest) Of(total int64, parts []Part) (memory, cores int64, fits bool) {
	memory, cores = c.Memory, c.Cores
	if memory == 0 {
		memory = int64(float64(total) * float64(c.MemoryPercent) / 100)
	}
	for i, part := range parts {
		if part.Memory >= memory || c.Memory == 0 && i == len(parts)-1 {
			return part.Memory, part.Cores, true
		}
	}
	return memory, cores, len(parts) == 0
}

func (c *CardRequest) of(r *run) (memory, cores int64, fits bool) {
	switch {
	case r.rules == nil:
		return c.Of(r.total, nil)
	case slices.Contains(r.rules.Refuses, c.pod):
		return 0, 0, false
	}
	return c.Of(r.total, r.rules.Parts)
}

// times returns how often the request's part of one card fits on a card of the run. Without cores left a card takes no
// pod, not even one that requests no cores, and 100 percent of them are only given on a card that is not used: HAMi's
// and Volcano's rules.
func (c *CardRequest) times(r *run) int64 {
	whole := c.Cores >= 100
	memory, cores, fits := c.of(r)
	if r.cores <= 0 || whole && r.used || !fits {
		return 0
	}
	n := min(r.slots, Unbounded)
	if memory > 0 && r.memory != unknownAmount {
		n = min(n, r.memory/memory)
	}
	if cores > 0 && r.cores != unknownAmount {
		n = min(n, instancesWithCores(r.cores, c.Cores, cores))
	}
	if whole {
		n = min(n, 1)
	}
	return n
}

// instancesWithCores returns how many parts that take this percentage of a card's cores one card gives. HAMi compares
// what is left with what a pod requests, and subtracts what its instance has
// (docs/reference/facts.md#mig-instances-of-hami).
func instancesWithCores(left, asked, takes int64) int64 {
	if left < max(asked, takes) {
		return 0
	}
	return (left-max(asked, takes))/takes + 1
}

// stacked returns the request for one part of a card, and how many of them a pod has, if one card may have several:
// those of different containers, and MIG instances, except with Volcano.
func (c *CardRequest) stacked(runs []run, order string) (part *CardRequest, parts int64) {
	whole := func(r run) bool { return r.rules == nil || len(r.rules.Parts) == 0 }
	instances := order != sharing.LastCard && len(runs) > 0 && !slices.ContainsFunc(runs, whole)
	if c.Cards <= 1 || !c.Stacked && !instances {
		return c, 1
	}
	one := *c
	one.Cards = 1
	return &one, c.Cards
}

// with returns count cards of the run after each has given n parts.
func (c *CardRequest) with(r run, count, n int64) run {
	memory, cores, _ := c.of(&r)
	if r.memory != unknownAmount {
		r.memory -= memory * n
	}
	if r.cores != unknownAmount {
		r.cores -= cores * n
	}
	if r.slots != unknownAmount {
		r.slots -= n
	}
	r.count, r.used = count, true
	r.rest = r.left()
	return r
}

// room returns how many pods fit on the cards, at most limit.
func (c *CardRequest) room(runs []run, order string, limit int64) int64 {
	if part, parts := c.stacked(runs, order); parts > 1 {
		return part.room(runs, order, cappedProduct(limit, parts)) / parts
	}
	if c.Cards > 1 {
		runs, order = c.inOwnOrder(runs, order)
		return c.roomOverCards(runs, order, limit)
	}
	var n int64
	for i := range runs {
		if n += cappedProduct(c.times(&runs[i]), runs[i].count); n >= limit {
			return limit
		}
	}
	return n
}

// take returns the cards with n more pods, of which they have room for as many.
func (c *CardRequest) take(runs []run, order string, n int64) []run {
	runs, own := c.inOwnOrder(runs, order)
	after := c.takeInOwnOrder(runs, own, n)
	if own != order {
		return ordered(after, order)
	}
	return after
}

// inOwnOrder returns the cards in the order in which the pod gets them.
func (c *CardRequest) inOwnOrder(runs []run, order string) ([]run, string) {
	if c.Order == "" || c.Order == order || order == sharing.LastCard {
		return runs, order
	}
	return ordered(slices.Clone(runs), c.Order), c.Order
}

func (c *CardRequest) takeInOwnOrder(runs []run, order string, n int64) []run {
	c, parts := c.stacked(runs, order)
	n *= parts
	switch {
	case c.Cards > 1:
		after, _ := c.takeOverCards(runs, order, n)
		return after
	case order == sharing.EmptiestCard:
		return c.takeLevel(runs, n)
	}
	after := make([]run, 0, len(runs)+2)
	for i, r := range runs {
		each := c.times(&r)
		if n == 0 || each == 0 {
			after = append(after, runs[i])
			continue
		}
		full := min(n/each, r.count)
		rest := int64(0)
		if full < r.count {
			rest = n % each
		}
		after = append(after, c.with(r, full, each))
		if n -= full*each + rest; rest > 0 {
			after = append(after, c.with(r, 1, rest))
			full++
		}
		r.count -= full
		after = append(after, r)
	}
	return ordered(after, order)
}

// takeLevel places pods on the emptiest card that fits, one after the other. While many are left, it gives each card a
// part of its share at once.
func (c *CardRequest) takeLevel(runs []run, n int64) []run {
	const parts = 8
	after := append(make([]run, 0, len(runs)+2), runs...)
	for n > 0 {
		at, cards := -1, int64(0)
		for i, r := range after {
			if c.times(&r) == 0 {
				continue
			}
			if cards += r.count; at < 0 {
				at = i
			}
		}
		r := after[at]
		each := min(max(n/cappedProduct(cards, parts), 1), c.times(&r))
		count := min(n/each, r.count)
		after[at].count -= count
		after = ordered(append(after, c.with(r, count, each)), sharing.EmptiestCard)
		n -= count * each
	}
	return after
}

// Pods that take a part of several cards: each on that many different cards.

// mostOverCards bounds how many of them are placed on one node. No node runs more pods.
const mostOverCards = 1 << 10

// roomOverCards returns how many pods fit if each takes its part of several cards, at most limit.
func (c *CardRequest) roomOverCards(runs []run, order string, limit int64) int64 {
	limit = min(limit, mostOverCards)
	if order == sharing.FullestCard || order == sharing.LastCard {
		_, n := c.takeInOrder(runs, order, limit)
		return n
	}
	return roomFor(c.placesOf(runs, make([]places, 0, 16)), c.Cards, limit)
}

// places is how many pods could use each of a number of cards.
type places struct{ cards, each int64 }

func (c *CardRequest) placesOf(runs []run, list []places) []places {
	for i := range runs {
		if n := c.times(&runs[i]); n > 0 {
			list = append(list, places{runs[i].count, n})
		}
	}
	return list
}

// roomFor returns how many pods with parts on several cards fit. n of them fit if the cards have n places for each
// part, at most n on one card, because no card has two parts of one pod.
func roomFor(list []places, parts, limit int64) int64 {
	low, high := int64(0), min(limit, placesFor(list, limit*parts)/parts)
	for n := high; low < high; n = (low + high + 1) / 2 {
		if placesFor(list, n) >= n*parts {
			low = n
		} else {
			high = n - 1
		}
	}
	return low
}

// placesFor counts the places that n pods could use, at most n on each card.
func placesFor(list []places, n int64) (sum int64) {
	for _, p := range list {
		sum += min(p.cards, mostOverCards) * min(p.each, n)
	}
	return sum
}

func (c *CardRequest) takeOverCards(runs []run, order string, n int64) ([]run, int64) {
	if order == sharing.FullestCard || order == sharing.LastCard {
		return c.takeInOrder(runs, order, n)
	}
	return c.takeKeepingRoom(runs, order, n)
}

// takeInOrder places pods on the first cards that fit. These stay the first while they fit.
func (c *CardRequest) takeInOrder(runs []run, order string, n int64) (after []run, placed int64) {
	after = runs
	for placed < n {
		var next []run
		cards, each := c.Cards, n-placed
		for _, r := range after {
			take := int64(0)
			if times := c.times(&r); times > 0 && cards > 0 {
				take, each = min(r.count, cards), min(each, times)
				cards -= take
			}
			first, rest := r, r
			first.count, rest.count = take, r.count-take
			next = append(next, first, rest)
		}
		if cards > 0 {
			break
		}
		cards = c.Cards
		for i := 0; cards > 0; i += 2 {
			cards -= next[i].count
			next[i] = c.with(next[i], next[i].count, each)
		}
		after, placed = ordered(next, order), placed+each
	}
	return after, placed
}

// takeKeepingRoom places pods on the preferred cards with which as many pods fit as with any others. If n more pods
// fit, a card with room for n of them loses one place in any case: either to the pod, or because n is one less.
// Therefore only the use of other cards can lower the room.
func (c *CardRequest) takeKeepingRoom(runs []run, order string, n int64) (after []run, placed int64) {
	after = runs
	list := make([]places, 0, 16)
	room := c.roomOverCards(runs, order, mostOverCards)
	for ; placed < n && room > 0; placed, room = placed+1, room-1 {
		list = c.placesOf(after, list[:0])
		var large int64
		for _, p := range list {
			if p.each >= room {
				large += p.cards
			}
		}
		small := placesFor(list, room) - room*c.Cards + c.Cards - large
		next, cards := make([]run, 0, 2*len(after)), c.Cards
		for _, r := range after {
			take, times := int64(0), c.times(&r)
			switch {
			case times >= room:
				take = min(r.count, cards)
			case times > 0:
				take = min(r.count, cards, max(small, 0))
				small -= take
			}
			cards -= take
			rest := r
			rest.count -= take
			next = append(next, c.with(r, take, 1), rest)
		}
		after = ordered(next, order)
	}
	return after, placed
}
