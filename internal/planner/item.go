package planner

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// item is a number of equal bundles with equal selectors. All work is done per item, never per bundle.
type item struct {
	request raydemand.Request
	need    []term
	// rank tells for each label set which selector it matches first, or noMatch.
	rank         []int
	alternatives int
	accelerator  bool
	constraints  int // terms of the preferred selector
	worth        float64
	key          string
	slice        sliceNeed
	// members are the items that this one stands for, nil if for itself; deferred ones are too many to be planned for now.
	members  []*item
	deferred bool
}

const noMatch = -1

// maxCount bounds how many bundles or pods are counted.
const maxCount = model.MaxCount

// items merges equal requests and sorts them largest first: constrained ones, then accelerators, then by size.
func (c *catalog) items(requests []raydemand.Request) []*item {
	merged := make(map[string]*item)
	var all []*item
	var buffer []byte
	for i := range requests {
		r := &requests[i]
		if r.Count <= 0 {
			continue
		}
		need := c.need(r.Bundle)
		buffer = appendKey(buffer[:0], need, r.Selectors, r.Slice)
		if known, ok := merged[string(buffer)]; ok {
			known.request.Count = min(known.request.Count+r.Count, maxCount)
			continue
		}
		it := c.newItem(*r, need, string(buffer))
		merged[it.key] = it
		all = append(all, it)
	}
	slices.SortFunc(all, largestFirst)
	return all
}

func (c *catalog) newItem(r raydemand.Request, need []term, key string) *item {
	r.Count = min(r.Count, maxCount)
	r.Bundle = withoutZeros(r.Bundle)
	it := &item{request: r, need: need, key: key, alternatives: max(1, len(r.Selectors)), slice: sliceNeedOf(&r, c.isolation)}
	if len(r.Selectors) > 0 {
		it.constraints = len(r.Selectors[0])
	}
	for _, t := range need {
		it.worth += c.worth(t.resource, t.amount)
		it.accelerator = it.accelerator || raydemand.IsUnitInstance(c.names[t.resource])
	}
	it.rank = make([]int, len(c.sets))
	for set, labels := range c.sets {
		it.rank[set] = firstMatch(r.Selectors, labels)
		if !it.slice.allows(c.slices[set]) {
			it.rank[set] = noMatch
		}
	}
	return it
}

// withoutZeros makes equal what asks for the same: which of two merged requests came first must not show.
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

func firstMatch(selectors []raydemand.Selector, labels map[string]string) int {
	if len(selectors) == 0 {
		return 0
	}
	return slices.IndexFunc(selectors, func(s raydemand.Selector) bool { return s.Matches(labels) })
}

// trivial reports whether the item asks for nothing that a node would have to be launched for.
func (it *item) trivial() bool {
	return len(it.need) == 0 && !slices.ContainsFunc(it.request.Selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
}

func largestFirst(a, b *item) int {
	return cmp.Or(
		cmp.Compare(b.constraints, a.constraints),
		compareBool(b.accelerator, a.accelerator),
		a.slice.compare(b.slice),
		cmp.Compare(len(b.need), len(a.need)),
		cmp.Compare(b.worth, a.worth),
		cmp.Compare(a.key, b.key),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// appendKey writes what makes two requests equal. Numbers come first: selectors are rare.
func appendKey(key []byte, need []term, selectors []raydemand.Selector, wish *raydemand.SliceWish) []byte {
	for _, t := range need {
		key = binary.BigEndian.AppendUint32(key, uint32(t.resource))
		key = binary.BigEndian.AppendUint64(key, uint64(t.amount))
	}
	key = binary.BigEndian.AppendUint32(key, math.MaxUint32)
	for _, selector := range selectors {
		key = append(key, selector.String()...)
		key = append(key, '\n')
	}
	if wish != nil {
		key = fmt.Appendf(key, "\x00%d %v %s", wish.Memory, wish.ComputeFraction, wish.Isolation)
	}
	return key
}
