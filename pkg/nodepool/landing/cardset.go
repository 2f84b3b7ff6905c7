package landing

// Pods that take a part of several cards: each on that many different cards.

// mostOverCards bounds how many of them are placed on one node. No node runs more pods.
const mostOverCards = 1 << 10

// roomOverCards returns how many pods fit if each takes its part of several cards, at most limit.
func (c *CardRequest) roomOverCards(runs []run, order string, limit int64) int64 {
	limit = min(limit, mostOverCards)
	if order == FullestCard || order == LastCard {
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
	if order == FullestCard || order == LastCard {
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
