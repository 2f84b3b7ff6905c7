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
	part, parts := c.stacked(runs, order)
	return part.fit(runs, order, cappedProduct(limit, parts)) / parts
}

// mostOverCards bounds how many pods with parts on several cards are placed on one node. No node runs more pods.
const mostOverCards = 1 << 10

// fit returns how many pods fit, at most limit, if each has its parts on different cards.
func (c *CardRequest) fit(runs []run, order string, limit int64) (n int64) {
	if c.Cards > 1 {
		for limit = min(limit, mostOverCards); n < limit; n++ {
			if runs = c.takeOne(runs, order); runs == nil {
				break
			}
		}
		return n
	}
	for i := range runs {
		if n += cappedProduct(c.times(&runs[i]), runs[i].count); n >= limit {
			return limit
		}
	}
	return n
}

// take returns the cards with n more pods, of which they have room for as many.
func (c *CardRequest) take(runs []run, order string, n int64) []run {
	part, parts := c.stacked(runs, order)
	if n *= parts; part.Cards <= 1 {
		return part.takeEach(runs, order, n)
	}
	for ; n > 0; n-- {
		runs = part.takeOne(runs, order)
	}
	return runs
}

// takeEach places n pods with a part of one card each on the first card that fits, one after the other. Only with
// EmptiestCard, another card may come first after each pod.
func (c *CardRequest) takeEach(runs []run, order string, n int64) []run {
	after := append(make([]run, 0, len(runs)+2), runs...)
	for n > 0 {
		at := slices.IndexFunc(after, func(r run) bool { return c.times(&r) > 0 })
		r, each := after[at], int64(1)
		if order != sharing.EmptiestCard {
			each = min(n, c.times(&r))
		}
		count := min(n/each, r.count)
		after[at].count -= count
		after = ordered(slices.Insert(after, at, c.with(r, count, each)), order)
		n -= count * each
	}
	return after
}

// takeOne places one pod with parts of several cards; nil if it does not fit. Schedulers that fill cards take the first
// ones that fit. Of the others it takes those with room for the most such pods, so that as many fit as can.
func (c *CardRequest) takeOne(runs []run, order string) []run {
	fits, takes, left := make([]int, 0, len(runs)), make([]int64, len(runs)), c.Cards
	for i := range runs {
		if c.times(&runs[i]) > 0 {
			fits = append(fits, i)
		}
	}
	if order != sharing.FullestCard && order != sharing.LastCard {
		slices.SortStableFunc(fits, func(a, b int) int { return cmp.Compare(c.times(&runs[b]), c.times(&runs[a])) })
	}
	for _, i := range fits {
		takes[i] = min(runs[i].count, left)
		left -= takes[i]
	}
	if left > 0 {
		return nil
	}
	after := make([]run, 0, 2*len(runs))
	for i, r := range runs {
		if takes[i] > 0 {
			after = append(after, c.with(r, takes[i], 1))
			r.count -= takes[i]
		}
		after = append(after, r)
	}
	return ordered(after, order)
}
