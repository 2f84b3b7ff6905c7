package place

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Item is a number of equal bundles with equal selectors. All work is done per item, never per bundle.
type Item struct {
	Request raydemand.Request
	Need    []Term
	// Rank is the index of the first matching selector for each label set, or NoMatch.
	Rank         []int
	Alternatives int
	accelerator  bool
	constraints  int // terms of the preferred selector
	worth        float64
	Key          string
	Slice        model.SliceNeed
	// Gang is the gang that it is a part of, if any, and Option the number of the option.
	Gang   *Gang
	Option int
	// aside: there are too many items to plan this one now. Deferred ones have their turn later, and the others have
	// room on what exists. position is the place on the ring of turns; empty if there are not too many.
	aside    bool
	Deferred bool
	position string
}

const NoMatch = -1

// Items merges equal requests and sorts them, largest first: by constraints, then accelerators, then size.
func (c *Catalog) Items(requests []raydemand.Request) []*Item {
	merged := make(map[string]*Item)
	var all []*Item
	var buffer []byte
	for i := range requests {
		r := &requests[i]
		if r.Count <= 0 {
			continue
		}
		need := c.NeedOf(r.Bundle)
		if buffer = appendKey(buffer[:0], need, r.Selectors, r.Slice); r.Moving {
			buffer = append(buffer, "\x00moving"...)
		}
		if known, ok := merged[string(buffer)]; ok {
			known.Request.Count = min(known.Request.Count+r.Count, MaxCount)
			continue
		}
		it := c.NewItem(*r, need, string(buffer))
		merged[it.Key] = it
		all = append(all, it)
	}
	slices.SortFunc(all, largestFirst)
	return all
}

func (c *Catalog) NewItem(r raydemand.Request, need []Term, key string) *Item {
	r.Count = min(r.Count, MaxCount)
	r.Bundle = withoutZeros(r.Bundle)
	it := &Item{
		Request:      r,
		Need:         need,
		Key:          key,
		Alternatives: max(1, len(r.Selectors)),
		Slice:        model.SliceNeedOf(&r, c.isolation),
	}
	if len(r.Selectors) > 0 && !r.Moving { // demand that waits comes before work that still has a place
		it.constraints = len(r.Selectors[0])
	}
	for _, t := range need {
		it.worth += c.worth(t.Resource, t.Amount)
		it.accelerator = it.accelerator || raydemand.IsUnitInstance(c.Names[t.Resource])
	}
	it.Rank = make([]int, len(c.Sets))
	for set, labels := range c.Sets {
		it.Rank[set] = landing.FirstMatch(r.Selectors, labels)
		if !it.Slice.Allows(c.slices[set]) {
			it.Rank[set] = NoMatch
		}
	}
	return it
}

// withoutZeros makes bundles that ask for the same equal, so that the order of merged requests does not matter.
func withoutZeros(b raydemand.Bundle) raydemand.Bundle {
	for _, amount := range b {
		if amount == 0 {
			b = maps.Clone(b)
			maps.DeleteFunc(b, func(_ string, amount raydemand.Amount) bool { return amount == 0 })
			break
		}
	}
	return b
}

// Asked returns the request as it was made, without the group that the replacement of a node prefers.
func (it *Item) Asked() raydemand.Request {
	r := it.Request
	if r.Moving {
		r.Selectors = nil
	}
	return r
}

// HasChoices reports whether the request was made with several selectors.
func (it *Item) HasChoices() bool { return it.Alternatives > 1 && !it.Request.Moving }

// Trivial reports whether the item needs nothing that a node would have to be launched for.
func (it *Item) Trivial() bool {
	return len(it.Need) == 0 &&
		!slices.ContainsFunc(it.Request.Selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
}

// largestFirst orders items as Items says. Tens of thousands are sorted with it, so it compares no more than it needs.
func largestFirst(a, b *Item) int {
	if a.constraints != b.constraints {
		return cmp.Compare(b.constraints, a.constraints)
	}
	if a.accelerator != b.accelerator {
		return CompareBool(b.accelerator, a.accelerator)
	}
	if a.Slice != b.Slice {
		if order := a.Slice.Compare(b.Slice); order != 0 {
			return order
		}
	}
	if len(a.Need) != len(b.Need) {
		return cmp.Compare(len(b.Need), len(a.Need))
	}
	return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.Key, b.Key))
}

// appendKey appends what equal requests have in common. Numbers come first, because selectors are rare.
func appendKey(key []byte, need []Term, selectors []raydemand.Selector, slice *raydemand.SliceRequirement) []byte {
	for _, t := range need {
		key = binary.BigEndian.AppendUint32(key, uint32(t.Resource))
		key = binary.BigEndian.AppendUint64(key, uint64(t.Amount))
	}
	key = binary.BigEndian.AppendUint32(key, math.MaxUint32)
	for _, selector := range selectors {
		key = append(key, selector.String()...)
		key = append(key, '\n')
	}
	if slice != nil {
		key = fmt.Appendf(key, "\x00%d %v %s", slice.Memory, slice.ComputeFraction, slice.Isolation)
	}
	return key
}

// plainSum adds the amounts of all resources, including bytes of memory, as Ray does.
func (it *Item) plainSum() (sum float64) {
	for _, t := range it.Need {
		sum += t.Amount.Float()
	}
	return sum
}
