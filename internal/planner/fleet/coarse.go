package fleet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Demand with very many shapes is placed by classes of similar shapes. A class asks for the maximum of its members, for
// each resource, so every member fits wherever a bundle of the class fits. Limits and promises hold; only some room is
// left over. The work is bounded by the number of classes.

const (
	// shapeWork bounds the square of the number of shapes times the number of groups. A round fills a new node of each
	// group about once per shape, and looks at all shapes each time. A plan takes some tens of rounds.
	shapeWork   = 100_000_000
	leastShapes = 300
	mostShapes  = 2000
	// finest is the number of equal parts into which classes first divide the amounts between two powers of two:
	// members differ by a thousandth.
	finest = 1024
	// mostCuts bounds the number of node sizes that classes respect, in addition to those of groups.
	mostCuts = 256
)

// MaxShapes is how many shapes of demand are placed individually.
func (r *Fleet) MaxShapes() int {
	most := int(math.Sqrt(float64(shapeWork / max(len(r.Groups), 1))))
	return min(max(most, leastShapes), mostShapes)
}

// Coarsen returns the items if there are few, or else classes of them. Classes depend only on the demand and on the
// sizes of groups and nodes, so the next plan makes the same ones.
func (r *Fleet) Coarsen(items []*vector.Item) []*vector.Item {
	most := r.MaxShapes()
	if len(items) <= most {
		return items
	}
	cuts := r.cuts()
	var classes []*vector.Item
	for parts := int64(finest); ; parts = parts * 4 / 5 {
		if classes = r.classes(items, cuts, parts, most); len(classes) <= most || parts == 0 {
			break
		}
	}
	slices.SortFunc(classes, vector.LargestFirst)
	if len(classes) > most {
		put := r.deferred(classes[most:])
		classes = append(classes[:most:most], put)
	}
	return classes
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

// classes joins items that can go to the same places and ask for similar amounts of the same resources. It stops early,
// with too many classes, unless all amounts are already in one part.
func (r *Fleet) classes(items []*vector.Item, cuts [][]raydemand.Amount, parts int64, most int) []*vector.Item {
	index := map[string]int{}
	var classes []*vector.Item
	var key []byte
	for _, it := range items {
		key = appendClass(it, key[:0], cuts, parts)
		at, known := index[string(key)]
		if !known {
			if len(classes) > most && parts > 0 {
				return classes
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
	return classes
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

// appendClass appends what the members of a class have in common.
func appendClass(it *vector.Item, key []byte, cuts [][]raydemand.Amount, parts int64) []byte {
	for _, t := range it.Need {
		above, _ := slices.BinarySearch(cuts[t.Resource], t.Amount)
		key = binary.AppendVarint(key, int64(t.Resource))
		key = binary.AppendVarint(key, int64(above))
		key = appendPart(key, int64(t.Amount), parts)
	}
	key = append(key, 0xff, 0xff)
	for _, rank := range it.Rank {
		key = binary.AppendVarint(key, int64(rank))
	}
	key = binary.AppendVarint(key, int64(it.Alternatives))
	key = binary.AppendVarint(key, int64(it.Constraints))
	return fmt.Appendf(key, "%v %v", it.Trivial(), it.Slice)
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

// deferred postpones the classes that are still too many. They are planned after others are served.
func (r *Fleet) deferred(classes []*vector.Item) *vector.Item {
	put := *classes[0]
	put.Members, put.Rank = nil, make([]int, len(r.Sets))
	for set := range put.Rank {
		put.Rank[set] = vector.NoMatch
	}
	put.Request.Count = 0
	for _, class := range classes {
		put.Request.Count = min(put.Request.Count+class.Request.Count, vector.MaxCount)
		for _, it := range class.Members {
			it.Deferred = true
			put.Members = append(put.Members, it)
		}
	}
	return &put
}
