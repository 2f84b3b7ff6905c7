package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// Demand that is too much for one plan is planned in turns. Each shape and each kind of gang has a position on a ring,
// which depends only on what it requests. A plan takes on demand from the snapshot's turn on, and the next plan
// continues with the first that this one deferred. So whatever comes and goes in between, each has its turn after a
// bounded number of plans, and a snapshot repeats its plan.

// leastTaken is how many shapes and kinds of gangs each plan takes on; fewer kinds, if each has more different bundles.
const leastTaken = 16

// atLevel is a bound of the demand that a plan takes on: a quarter for each level, because most work grows with the
// square of the demand, but not less than the least.
func atLevel(level, most int) int {
	return min(most, max(most>>(2*level), leastTaken))
}

// Figures of the work of a plan with many shapes, in looks, measured by BenchmarkShapes. For each shape, a round looks
// about looksPerGroup times at each group, because it finds shapes that fit by an index, and looksPerNode times at each
// kind of node. A plan takes about leastRounds rounds before it could end.
const (
	looksPerGroup = 35
	looksPerNode  = 2
	leastRounds   = 5
	maxIndexed    = 20_000
)

// Limit bounds the work of the plan, and lets it take on less than usual. It does nothing if no work is given.
func (r *Fleet) Limit(work int64, level int) {
	if work > 0 {
		r.budgeted, r.level, r.most, r.parts = true, level, r.shapesWithin(work), wholeParts
		r.mostBundles = max(int(math.Sqrt(float64(work/looksPerPair))), leastTaken*leastTaken)
	}
}

// wholePart is the part of a plan that is all of it. Parts are whole numbers, so that all processors agree on them.
const wholePart = 1024

// parts are how much of a plan the kinds of demand may take; each call may take the same.
type parts struct{ shapes, call, gangs int }

var wholeParts = parts{wholePart, wholePart, wholePart}

// Divide shares a plan with a budget among the kinds of demand: a number of shapes, of items in each call, and of kinds
// of gangs. Each alone could take all of it. Each gets what it needs up to a part that is the same for all. But shapes
// and gangs that both have turns share their two parts so that both come equally far on the ring, because the next plan
// continues where the slower one ends.
func (r *Fleet) Divide(shapes int, calls []int, gangs int) {
	if !r.budgeted {
		return
	}
	r.parts = wholeParts
	ofShapes, ofGangs := partOf(shapes, r.MaxShapesAt(0)), partOf(gangs, r.MaxGangsAt(0))
	needs := []int{min(ofShapes, wholePart), min(ofGangs, wholePart)}
	for _, items := range calls {
		needs = append(needs, min(partOf(items, r.MostOfCall(0)), wholePart))
	}
	part := wholePart
	taken := func() (all int) {
		for _, need := range needs {
			all += min(need, part)
		}
		return all
	}
	for taken() > wholePart {
		part--
	}
	r.parts = parts{part, part, part}
	if ofShapes > part && ofGangs > part {
		r.parts.shapes = 2 * part * ofShapes / (ofShapes + ofGangs)
		r.parts.gangs = 2*part - r.parts.shapes
	}
}

// partOf returns which part of a plan some demand needs of which a whole plan has at most so much.
func partOf(demand, most int) int { return (demand*wholePart + most - 1) / most }

// ofPart returns how much a part of a plan may have of which a whole plan has at most so much.
func (r *Fleet) ofPart(part, most int) int {
	if !r.budgeted {
		return most
	}
	return max(most*part/wholePart, min(most, leastTaken))
}

// shapesWithin returns for how many shapes a plan could end with half of an amount of work.
func (r *Fleet) shapesWithin(work int64) int {
	work = work / 2 / leastRounds
	groups := int64(max(len(r.Groups), 1))
	most := int(min(work/(looksPerGroup*groups+looksPerNode*r.nodeKinds()), maxIndexed))
	if len(r.Names) > vector.MostIndexed { // without an index, a round looks at all shapes for each
		most = min(most, int(math.Sqrt(float64(work/groups))))
	}
	return max(most, leastTaken)
}

// nodeKinds counts the nodes that differ in their group or in what is free.
func (r *Fleet) nodeKinds() int64 {
	kinds := map[string]bool{}
	var key []byte
	for i := range r.Nodes {
		n := &r.Nodes[i]
		key = binary.AppendVarint(key[:0], int64(n.GroupIndex))
		for _, amount := range n.Free {
			key = binary.AppendVarint(key, int64(amount))
		}
		kinds[string(key)] = true
	}
	return int64(len(kinds))
}

const (
	// shapeWork bounds the square of the number of shapes times the number of groups. A round fills a new node of each
	// group about once per shape, and looks at all shapes each time. A plan takes some tens of rounds.
	shapeWork   = 100_000_000
	leastShapes = 300
	mostShapes  = 2000
)

// MaxShapes is how many shapes of demand are placed individually.
func (r *Fleet) MaxShapes() int { return r.MaxShapesAt(r.level) }

// MaxShapesAt is MaxShapes on a level.
func (r *Fleet) MaxShapesAt(level int) int {
	if !r.budgeted {
		return r.mostShapes()
	}
	return atLevel(level, r.ofPart(r.parts.shapes, r.most))
}

// MostOfCall is how many items a call is joined into on a level.
func (r *Fleet) MostOfCall(level int) int {
	if !r.budgeted {
		return r.mostShapes()
	}
	return min(atLevel(level, r.ofPart(r.parts.call, r.most)), r.ofPart(r.parts.call, r.mostShapes()))
}

func (r *Fleet) mostShapes() int {
	most := int(math.Sqrt(float64(shapeWork / max(len(r.Groups), 1))))
	return min(max(most, leastShapes), mostShapes)
}

// Each kind of gang is tried on a copy of everything that is free, so the number of kinds of gangs times the number of
// kinds of nodes bounds the work of a round.
const (
	gangWork         = 10_000_000
	minDistinctGangs = 200
	maxDistinctGangs = 2000
)

// looksPerPair is about how often a plan looks at a node for each pair of different bundles of gangs: each looks at the
// nodes that those before it need. BenchmarkLargeGangs measures it.
const looksPerPair = 4

// MaxGangs is how many kinds of gangs are planned.
func (r *Fleet) MaxGangs() int { return r.MaxGangsAt(r.level) }

// MaxGangsAt is MaxGangs on a level.
func (r *Fleet) MaxGangsAt(level int) int {
	most := min(max(gangWork/(len(r.Nodes)+len(r.Groups)+1), minDistinctGangs), maxDistinctGangs)
	if r.budgeted && r.gangSize > 0 {
		most = max(min(most, r.mostBundles/r.gangSize), 1)
	}
	return atLevel(level, r.ofPart(r.parts.gangs, most))
}

// inTurn returns the items in the order of their turns.
func (r *Fleet) inTurn(items []*vector.Item) []*vector.Item {
	var text []byte
	for _, it := range items {
		if it.Position == "" {
			text = r.appendDescription(text[:0], it)
			it.Position = position(text)
		}
	}
	order := slices.Clone(items)
	slices.SortStableFunc(order, func(a, b *vector.Item) int {
		return cmp.Or(r.CompareTurns(a.Position, b.Position), cmp.Compare(a.Key, b.Key))
	})
	return order
}

// CompareTurns compares two positions by how soon they follow the turn of this plan.
func (r *Fleet) CompareTurns(a, b string) int {
	return cmp.Or(vector.CompareBool(a < r.turn, b < r.turn), cmp.Compare(a, b))
}

// appendDescription appends what an item requests, independently of how the catalog numbers names.
func (r *Fleet) appendDescription(text []byte, it *vector.Item) []byte {
	for _, t := range it.Need {
		text = append(strconv.AppendQuote(text, r.Names[t.Resource]), ' ')
		text = append(strconv.AppendInt(text, int64(t.Amount), 10), ' ')
	}
	for _, s := range it.Request.Selectors {
		text = append(strconv.AppendQuote(text, s.String()), ' ')
	}
	if s := it.Request.Slice; s != nil {
		text = fmt.Appendf(text, "%v", *s)
	}
	return append(strconv.AppendBool(text, it.Request.Moving), ';')
}

// Next returns the turn of the next plan: the first of the deferred positions. Positions that equal this turn had their
// turn, unless there is no other.
func (r *Fleet) Next(deferred []string) string {
	later := slices.DeleteFunc(slices.Clone(deferred), func(position string) bool { return position == r.turn })
	if len(later) == 0 {
		return r.turn
	}
	return slices.MinFunc(later, r.CompareTurns)
}

func position(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
