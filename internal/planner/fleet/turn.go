package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// Demand that is too much for one plan is planned in turns. Each shape and each kind of gang has a position on a ring,
// which depends only on what it requests. A plan takes on demand from the snapshot's turn on, and the next plan
// continues with the first that this one deferred. So whatever comes and goes in between, each has its turn after a
// bounded number of plans, and a snapshot repeats its plan.

// leastTaken is how many shapes and kinds of gangs each plan takes on.
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
		r.budgeted, r.level, r.most = true, level, r.shapesWithin(work)
	}
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

// inTurn returns the items in the order of their turns.
func (r *Fleet) inTurn(items []*vector.Item) []*vector.Item {
	for _, it := range items {
		if it.Position == "" {
			h := sha256.New()
			r.describe(h, it)
			it.Position = position(h)
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

// describe writes what an item requests, independently of how the catalog numbers names.
func (r *Fleet) describe(h hash.Hash, it *vector.Item) {
	for _, t := range it.Need {
		fmt.Fprintf(h, "%q %d ", r.Names[t.Resource], t.Amount)
	}
	for _, s := range it.Request.Selectors {
		fmt.Fprintf(h, "%q ", s.String())
	}
	if s := it.Request.Slice; s != nil {
		fmt.Fprintf(h, "%v", *s)
	}
	fmt.Fprintf(h, "%v;", it.Request.Moving)
}

// positionOf returns the position of a kind of gang.
func (r *Fleet) positionOf(g *Gang) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q ", g.Strategy, g.TopologyLabel)
	if g.TopologyLabel != "" {
		fmt.Fprintf(h, "%q ", g.ID) // each is a kind of its own
	}
	for _, o := range g.Options {
		for _, it := range o.Items {
			fmt.Fprintf(h, "%d ", it.Request.Count)
			r.describe(h, it)
		}
		fmt.Fprint(h, "or ")
	}
	return position(h)
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

func position(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:8]) }
