package fleet

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Demand with very many shapes is placed by classes of similar shapes. A class asks for the maximum of its members, for
// each resource, so every member fits wherever a bundle of the class fits. Limits and promises hold; only some room is
// left over. The work is bounded by the number of classes.

const (
	// finest is the number of equal parts into which classes first divide the amounts between two powers of two:
	// members differ by a thousandth. With coarsest, which applies to plans with a budget, they differ by a
	// sixty-fourth at most.
	finest   = 1024
	coarsest = 64
	// mostCuts bounds the number of node sizes that classes respect, in addition to those of groups.
	mostCuts = 256
)

// Similar returns the items if there are few, or else classes of similar items. If these are still too many, it returns
// those of a part of the items, from the fleet's turn on, and defers the others. Items that no group and no node suits
// need no turn. Classes depend only on the demand, the turn, and the sizes of groups and nodes, so an equal plan makes
// the same ones.
func (r *Fleet) Similar(items []*vector.Item) []*vector.Item {
	most := r.MaxShapes()
	if len(items) <= most {
		return items
	}
	items, hopeless := r.split(items)
	if len(hopeless) > 0 {
		return append(r.similar(items, most), r.placeless(hopeless))
	}
	return r.similar(items, most)
}

func (r *Fleet) similar(items []*vector.Item, most int) []*vector.Item {
	if len(items) <= most {
		return slices.Clip(items)
	}
	least := int64(0)
	if r.budgeted {
		least = coarsest
	}
	cuts := r.cuts()
	if classes := r.joined(items, cuts, least, most); classes != nil {
		return classes
	}
	classes, rest := r.classes(r.inTurn(items), cuts, least, most)
	slices.SortFunc(classes, vector.LargestFirst)
	return append(classes, r.deferred(rest))
}

// Coarsen is Similar for demand that is served together: it defers nothing if it can join items, no matter how much
// their amounts differ. Otherwise it returns the classes whose turn it is.
func (r *Fleet) Coarsen(items []*vector.Item) []*vector.Item {
	most := r.MostOfCall(r.level)
	if len(items) <= most {
		return items
	}
	cuts := r.cuts()
	if classes := r.joined(items, cuts, 0, most); classes != nil {
		return classes
	}
	items, hopeless := r.split(items)
	classes, rest := r.classes(r.inTurn(items), cuts, 0, most)
	slices.SortFunc(classes, vector.LargestFirst)
	if len(rest) > 0 {
		classes = append(classes, r.deferred(rest))
	}
	if len(hopeless) > 0 {
		classes = append(classes, r.placeless(hopeless))
	}
	return classes
}

// joined returns the finest classes that are few enough, largest first, or nil if there are none down to the least
// number of parts.
func (r *Fleet) joined(items []*vector.Item, cuts [][]raydemand.Amount, least int64, most int) []*vector.Item {
	kinds := kindsOf(items, cuts)
	for parts := int64(finest); parts >= least; parts = parts * 4 / 5 {
		if fewClasses(items, kinds, parts, most) {
			classes, _ := r.classesOf(items, kinds, parts, most)
			slices.SortFunc(classes, vector.LargestFirst)
			return classes
		}
		if parts == 0 {
			break
		}
	}
	return nil
}

// cuts lists, by resource, the total amounts of groups' pods and of nodes. No class has members on both sides of a cut,
// so a class fits on an empty node if its members do.
func (r *Fleet) cuts() [][]raydemand.Amount {
	cuts := make([][]raydemand.Amount, len(r.Names))
	for resource := range cuts {
		var own, others []raydemand.Amount
		for i := range r.Groups {
			own = append(own, r.Groups[i].Shape.Total[resource])
		}
		for i := range r.Nodes {
			if n := &r.Nodes[i]; n.Shape != nil && (n.GroupIndex < 0 || n.Shape != r.Groups[n.GroupIndex].Shape) {
				others = append(others, n.Shape.Total[resource])
			}
		}
		slices.Sort(others)
		if others = slices.Compact(others); len(others) <= mostCuts {
			own = append(own, others...)
		}
		slices.Sort(own)
		cuts[resource] = slices.Compact(own)
	}
	return cuts
}

// classes joins items that can go to the same places and ask for similar amounts of the same resources. It stops before
// the item that would need one class too many, and returns the rest of the items.
func (r *Fleet) classes(
	items []*vector.Item, cuts [][]raydemand.Amount, parts int64, most int,
) (classes, rest []*vector.Item) {
	return r.classesOf(items, kindsOf(items, cuts), parts, most)
}

// classesOf is classes for items of known kinds.
func (r *Fleet) classesOf(items []*vector.Item, kinds []int, parts int64, most int) (classes, rest []*vector.Item) {
	index := map[string]int{}
	var key []byte
	for i, it := range items {
		key = appendClass(key[:0], it, kinds[i], parts)
		at, known := index[string(key)]
		if !known {
			if len(classes) == most {
				rest = items[i:]
				break
			}
			index[string(key)] = len(classes)
			class := *it
			class.Need, class.Members = slices.Clone(it.Need), []*vector.Item{it}
			classes = append(classes, &class)
			continue
		}
		class := classes[at]
		class.Members = append(class.Members, it)
		class.Request.Count = min(class.Request.Count+it.Request.Count, vector.MaxCount)
		for i, t := range it.Need {
			class.Need[i].Amount = max(class.Need[i].Amount, t.Amount)
		}
	}
	for _, class := range classes {
		settleClass(class, r.Catalog)
	}
	return classes, rest
}

// fewClasses reports whether items make at most this many classes.
func fewClasses(items []*vector.Item, kinds []int, parts int64, most int) bool {
	known := make(map[string]struct{}, most+1)
	var key []byte
	for i, it := range items {
		key = appendClass(key[:0], it, kinds[i], parts)
		if _, counted := known[string(key)]; counted {
			continue
		}
		if len(known) == most {
			return false
		}
		known[string(key)] = struct{}{}
	}
	return true
}

// settleClass completes a class after all of its members are known.
func settleClass(it *vector.Item, c *vector.Catalog) {
	it.Worth = 0
	it.Request.Bundle = make(raydemand.Bundle, len(it.Need))
	for i, t := range it.Need {
		it.Need[i] = c.Term(t.Resource, t.Amount)
		it.Worth += c.Worth(t.Resource, t.Amount)
		it.Request.Bundle[c.Names[t.Resource]] = t.Amount
	}
	it.Key = string(vector.AppendKey(nil, it.Need, it.Request.Selectors, it.Request.Slice))
}

// kindsOf numbers what the members of a class have in common beside the sizes of their amounts. The attempts to find
// few classes compare these numbers.
func kindsOf(items []*vector.Item, cuts [][]raydemand.Amount) []int {
	kinds, known := make([]int, len(items)), map[string]int{}
	var key []byte
	for i, it := range items {
		key = appendKind(key[:0], it, cuts)
		kind, seen := known[string(key)]
		if !seen {
			kind = len(known)
			known[string(key)] = kind
		}
		kinds[i] = kind
	}
	return kinds
}

func appendKind(key []byte, it *vector.Item, cuts [][]raydemand.Amount) []byte {
	key = binary.AppendVarint(key, int64(len(it.Need)))
	for _, t := range it.Need {
		above, _ := slices.BinarySearch(cuts[t.Resource], t.Amount)
		key = binary.AppendVarint(key, int64(t.Resource))
		key = binary.AppendVarint(key, int64(above))
	}
	for _, rank := range it.Rank {
		key = binary.AppendVarint(key, int64(rank))
	}
	key = binary.AppendVarint(key, int64(it.Alternatives))
	key = binary.AppendVarint(key, int64(it.Constraints))
	key = strconv.AppendBool(key, it.Trivial())
	if it.Slice == (vector.SliceRequirement{}) {
		return key
	}
	return fmt.Appendf(key, "%v", it.Slice)
}

// appendClass appends what the members of a class have in common.
func appendClass(key []byte, it *vector.Item, kind int, parts int64) []byte {
	key = binary.AppendVarint(key, int64(kind))
	for _, t := range it.Need {
		key = appendPart(key, int64(t.Amount), parts)
	}
	return key
}

// appendPart appends the part that an amount lies in: its power of two, and the fraction of the way to the next. With 0
// parts, all amounts are in one part.
func appendPart(key []byte, amount, parts int64) []byte {
	if parts == 0 {
		return append(key, 0)
	}
	power := bits.Len64(uint64(amount)) - 1
	const precise = 40 // binary digits, so that the product below does not overflow
	drop := max(power-precise, 0)
	rest := amount>>drop - 1<<(power-drop)
	key = binary.AppendVarint(key, int64(power))
	return binary.AppendVarint(key, rest*parts>>(power-drop))
}

// split separates the items that no group and no node suits.
func (r *Fleet) split(items []*vector.Item) (open, hopeless []*vector.Item) {
	shapes := r.shapes()
	for _, it := range items {
		if slices.ContainsFunc(shapes, it.Suits) {
			open = append(open, it)
		} else {
			hopeless = append(hopeless, it)
		}
	}
	return open, hopeless
}

// shapes lists the shapes of groups and nodes, each once.
func (r *Fleet) shapes() (all []*vector.Shape) {
	known := map[string]bool{}
	var key []byte
	add := func(s *vector.Shape) {
		key = binary.AppendVarint(key[:0], int64(s.Labels))
		for _, amount := range s.Total {
			key = binary.AppendVarint(key, int64(amount))
		}
		if !known[string(key)] {
			known[string(key)] = true
			all = append(all, s)
		}
	}
	for i := range r.Groups {
		add(r.Groups[i].Shape)
		if r.Groups[i].Others != nil {
			add(r.Groups[i].Others)
		}
	}
	for i := range r.Nodes {
		if r.Nodes[i].Shape != nil {
			add(r.Nodes[i].Shape)
		}
	}
	return all
}

// deferred stands for items, or classes of them, that are too many. They have no place in this plan.
func (r *Fleet) deferred(items []*vector.Item) *vector.Item {
	put := r.placeless(items)
	put.Deferred = true
	for _, it := range put.Members {
		it.Deferred = true
	}
	return put
}

// placeless stands for items, or classes of them, without a place.
func (r *Fleet) placeless(items []*vector.Item) *vector.Item {
	put := *items[0]
	put.Members, put.Rank = nil, make([]int, len(r.Sets))
	for set := range put.Rank {
		put.Rank[set] = vector.NoMatch
	}
	put.Request.Count = 0
	for _, it := range items {
		put.Request.Count = min(put.Request.Count+it.Request.Count, vector.MaxCount)
		if it.Members == nil {
			put.Members = append(put.Members, it)
		} else {
			put.Members = append(put.Members, it.Members...)
		}
	}
	return &put
}
