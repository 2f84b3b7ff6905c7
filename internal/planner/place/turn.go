package place

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A plan takes on a bounded number of different shapes. More demand is planned in turns. Each shape and each kind of
// gang has a position on a ring, which depends only on what it requests. A plan takes on demand from the snapshot's
// turn on, and the next plan continues with the first that this one deferred. So whatever comes and goes in between,
// each has its turn after a bounded number of plans, and a snapshot repeats its plan.
//
// Shapes that are not planned now and have room on existing nodes, or on pods on their way, are placed there before all
// else, and need no turn. So plans in turns add up to what all of the demand needs.
//
// The fixed point: a plan launches only for shapes that have no room beside all that does. Each launch leaves fewer of
// them, and idle workers that deferred demand could use stay. So when all turns are through and no demand has changed,
// either all of it has room and nothing is deferred, or a limit prevents the rest. Then the plans are empty.

const (
	// mostShapes is how many different shapes one plan takes on, and leastShapes how many in any case. A kind of gang
	// counts as many as it has different bundles.
	mostShapes  = 2000
	leastShapes = 16
)

// Figures of the work of a plan with many shapes, in looks, measured by BenchmarkShapes. For each shape, a round looks
// about looksPerGroup times at each group, because it finds shapes that fit by an index, and looksPerNode times at each
// kind of node. A plan takes about leastRounds rounds before it could end. For each pair of different bundles of gangs,
// it looks looksPerPair times at a node, because each looks at the nodes that those before it need.
const (
	looksPerGroup = 35
	looksPerNode  = 2
	leastRounds   = 5
	looksPerPair  = 4
)

// limit lets the plan take on only as many shapes as it could end with in half of an amount of work. It does nothing if
// no work is given.
func (r *Fleet) limit(work int64) {
	if work <= 0 {
		return
	}
	rounds := work / 2 / leastRounds
	groups := int64(max(len(r.Groups), 1))
	most := min(rounds/(looksPerGroup*groups+looksPerNode*r.nodeKinds()), mostShapes)
	most = min(most, int64(math.Sqrt(float64(work/looksPerPair))))
	if len(r.Names) > mostIndexed { // without an index, a round looks at all shapes for each
		most = min(most, int64(math.Sqrt(float64(rounds/groups))))
	}
	r.MostShapes = max(int(most), leastShapes)
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

// turn is a shape or a kind of gang on the ring, and as how many shapes it counts.
type turn struct {
	position string
	shapes   int
	deferred []*bool
}

// DeferMany leaves the demand that exceeds the bound to later plans. What has its turn in this one stays, at least one
// shape or kind of gang. Equal gangs are of one kind, and what has the same position has its turn together.
func (r *Fleet) DeferMany(items []*Item, gangs []*Gang) {
	shapes := len(items)
	var kinds [][]*Gang
	for len(gangs) > 0 {
		var front []*Gang
		front, gangs = cutIdentical(gangs)
		kinds = append(kinds, front)
		shapes += len(front[0].Items())
	}
	if shapes <= r.MostShapes {
		return
	}
	ring := make([]turn, 0, len(items)+len(kinds))
	var text []byte
	for _, it := range items {
		text = r.appendDescription(text[:0], it)
		it.position = position(text)
		ring = append(ring, turn{it.position, 1, []*bool{&it.Deferred, &it.aside}})
	}
	for _, kind := range kinds {
		t := turn{r.positionOf(kind[0]), len(kind[0].Items()), nil}
		for _, g := range kind {
			g.position, t.deferred = t.position, append(t.deferred, &g.Deferred)
		}
		ring = append(ring, t)
	}
	slices.SortStableFunc(ring, func(a, b turn) int { return r.compareTurns(a.position, b.position) })
	taken, last := ring[0].shapes, 0
	for last+1 < len(ring) &&
		(ring[last+1].position == ring[last].position || taken+ring[last+1].shapes <= r.MostShapes) {
		last++
		taken += ring[last].shapes
	}
	for _, t := range ring[last+1:] {
		for _, deferred := range t.deferred {
			*deferred = true
		}
	}
}

// compareTurns compares two positions by how soon they follow the turn of this plan.
func (r *Fleet) compareTurns(a, b string) int {
	return cmp.Or(CompareBool(a < r.turn, b < r.turn), cmp.Compare(a, b))
}

// appendDescription appends what an item requests, independently of how the catalog numbers names.
func (r *Fleet) appendDescription(text []byte, it *Item) []byte {
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

// next returns the turn of the next plan: the first of the deferred positions. Positions that equal this turn had their
// turn, unless there is no other.
func (r *Fleet) next(deferred []string) string {
	later := slices.DeleteFunc(slices.Clone(deferred), func(position string) bool { return position == r.turn })
	if len(later) == 0 {
		return r.turn
	}
	return slices.MinFunc(later, r.compareTurns)
}

// positionOf returns the position of a kind of gang.
func (r *Fleet) positionOf(g *Gang) string {
	text := fmt.Appendf(nil, "%q %q ", g.Strategy, g.TopologyLabel)
	if g.TopologyLabel != "" {
		text = fmt.Appendf(text, "%q ", g.ID) // each is a kind of its own
	}
	for _, o := range g.Options {
		for _, it := range o.Items {
			text = append(strconv.AppendInt(text, it.Request.Count, 10), ' ')
			text = r.appendDescription(text, it)
		}
		text = append(text, "or "...)
	}
	return position(text)
}

// position is the place of a description on the ring.
func position(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
