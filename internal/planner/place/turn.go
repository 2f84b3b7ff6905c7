package place

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/internal/planner/model"
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
// them, and idle workers stay. So when all turns are through and no demand has changed,
// either all of it has room and nothing is deferred, or a limit prevents the rest. Then the plans are empty.

// A plan takes on fewShapes different shapes, unless its policy says another number. To read very many single shapes,
// and to place the others on what exists, takes as long as to plan a twentieth of them; so it takes on that many, up to
// mostShapes (BenchmarkTurns). A kind of gang counts as many shapes as it has different bundles.
const (
	fewShapes  = 200
	mostShapes = 1000
)

// mostShapesOf returns how many shapes a plan takes on if so many single ones wait.
func mostShapesOf(policy model.Policy, single int) int {
	if policy.Shapes > 0 {
		return policy.Shapes
	}
	return min(max(fewShapes, single/20), mostShapes)
}

// turn is a shape or a kind of gang on the ring, and as how many shapes it counts.
type turn struct {
	position string
	shapes   int
	deferred []*bool
}

// deferMany leaves the demand that exceeds the bound to later plans. What has its turn in this one stays, at least one
// shape or kind of gang. Equal gangs are of one kind, and what has the same position has its turn together. Demand that
// nothing suits needs no turn. It returns the gangs that it defers.
func (p *Search) deferMany(within []*Item) (later []*Gang) {
	items := slices.Concat(within, p.kinds, p.Requests)
	items = slices.DeleteFunc(items, func(it *Item) bool { return !p.Certain(it) })
	p.MostShapes = mostShapesOf(p.Policy, len(items))
	shapes := len(items)
	var kinds [][]*Gang
	for front := range kindsOf(p.placeable) {
		kinds = append(kinds, front)
		shapes += len(front[0].Items())
	}
	if shapes <= p.MostShapes {
		return nil
	}
	ring := make([]turn, 0, len(items)+len(kinds))
	var text []byte
	for _, it := range items {
		text = p.appendDescription(text[:0], it)
		it.position = position(text)
	}
	p.joinTurns()
	for _, it := range items {
		ring = append(ring, turn{it.position, 1, []*bool{&it.Deferred, &it.aside}})
	}
	for _, kind := range kinds {
		t := turn{p.positionOf(kind[0]), len(kind[0].Items()), nil}
		for _, g := range kind {
			t.deferred = append(t.deferred, &g.Deferred)
			for _, it := range g.Items() {
				it.position = t.position
			}
		}
		ring = append(ring, t)
	}
	slices.SortStableFunc(ring, func(a, b turn) int { return p.compareTurns(a.position, b.position) })
	taken, last := ring[0].shapes, 0
	for last+1 < len(ring) &&
		(ring[last+1].position == ring[last].position || taken+ring[last+1].shapes <= p.MostShapes) {
		last++
		taken += ring[last].shapes
	}
	for _, t := range ring[last+1:] {
		for _, deferred := range t.deferred {
			*deferred = true
		}
	}
	now := make([]*Gang, 0, len(p.placeable))
	for _, g := range p.placeable {
		if g.Deferred {
			later = append(later, g)
		} else {
			now = append(now, g)
		}
	}
	p.placeable = now
	return later
}

// joinTurns gives all bundles of an owner's request that is all or nothing the same position, because a part of it is
// never served alone. Requests that share a kind of bundle have their turn together.
func (p *Search) joinTurns() {
	for joined := true; joined; {
		joined = false
		for i := range p.RestRequests {
			s := &p.RestRequests[i]
			first := ""
			for _, k := range s.kinds {
				if at := p.kinds[k].position; s.AllOrNothing && !s.Plain && at != "" && (first == "" || at < first) {
					first = at
				}
			}
			for _, k := range s.kinds {
				if it := p.kinds[k]; first != "" && it.position != "" && it.position != first {
					it.position, joined = first, true
				}
			}
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
		for _, it := range o {
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

// parted separates what is planned now from what is set aside.
func parted(items []*Item) (now, aside []*Item) {
	for _, it := range items {
		if it.aside {
			aside = append(aside, it)
		} else {
			now = append(now, it)
		}
	}
	return now, aside
}

// hold places gangs that have their turn later, and then items that are set aside, on what exists, and returns what
// that leaves. Those that have room there are not deferred.
func (p *Search) hold(aside []*Item, later []*Gang, classes []NodeClass) []NodeClass {
	if len(aside)+len(later) == 0 {
		return classes
	}
	l := p.open(classes, make([]int64, len(p.Groups)))
	clear(l.room)
	for front := range kindsOf(later) {
		served := 0
		if p.hasPlaces(l, front[0]) {
			l, served = p.placeIdentical(l, front)
		}
		for i, g := range front {
			g.Deferred = i >= served
		}
	}
	p.heldRuns = append(p.heldRuns, l.runs...)
	l = p.holdItems(l, aside)
	for _, w := range l.log {
		if w.Item.Gang != nil || !w.Item.Deferred {
			p.waits = append(p.waits, w)
		}
	}
	return l.classes
}

// holdItems places items on what exists. Those with the same position (joinTurns) need room for all of them.
func (p *Search) holdItems(l *Ledger, items []*Item) *Ledger {
	for {
		trial, b := p.trial(l), p.newBatch("", items, fullest)
		p.fillExisting(trial, b)
		alike, lacking := map[string]int{}, map[string]bool{}
		for i, it := range items {
			it.Deferred = b.left[i] > 0
			alike[it.position]++
			lacking[it.position] = lacking[it.position] || it.Deferred
		}
		var rest []*Item
		for _, it := range items {
			if lacking[it.position] && alike[it.position] > 1 {
				it.Deferred = true
			} else {
				rest = append(rest, it)
			}
		}
		if len(rest) == len(items) {
			p.release(l)
			return trial
		}
		p.release(trial)
		items = rest
	}
}

// addUnplanned adds the demand that the rounds did not place: shapes that are set aside, deferred gangs, and gangs
// without a place.
func (p *Search) addUnplanned(out *Outcome) {
	for _, g := range p.Gangs {
		if g.unplaceable || g.Deferred {
			out.Gangs = append(out.Gangs, g)
		}
	}
	slices.SortFunc(out.Gangs, func(a, b *Gang) int { return a.Number - b.Number })
	out.Log, out.Runs = append(out.Log, p.waits...), append(out.Runs, p.heldRuns...)
	p.Requests, out.Unserved = withAside(p.Requests, p.aside, out.Unserved)
	for i := range p.Claims {
		c := &p.Claims[i]
		at := slices.Index(out.Claims, i)
		if at < 0 && !slices.ContainsFunc(c.aside, func(it *Item) bool { return it.Deferred }) {
			c.Items = append(c.Items, c.aside...)
			slices.SortFunc(c.Items, largestFirst)
			continue
		}
		if at < 0 {
			at = len(out.Claims)
			out.Claims, out.claimed = append(out.Claims, i), append(out.claimed, make([]int64, len(c.Items)))
		}
		c.Items, out.claimed[at] = withAside(c.Items, c.aside, out.claimed[at])
	}
}

// withAside returns items with those that are set aside, and the unserved bundles of each.
func withAside(items, aside []*Item, unserved []int64) ([]*Item, []int64) {
	if len(aside) == 0 {
		return items, unserved
	}
	left := make(map[*Item]int64, len(items)+len(aside))
	for i, it := range items {
		left[it] = unserved[i]
	}
	for _, it := range aside {
		if it.Deferred {
			left[it] = it.Request.Count
		}
	}
	all := slices.Concat(items, aside)
	slices.SortFunc(all, largestFirst)
	unserved = make([]int64, len(all))
	for i, it := range all {
		unserved[i] = left[it]
	}
	return all, unserved
}

// Deferred returns the demand that is too much for this plan; nil if there is none.
func (p *Search) Deferred() *model.Deferred {
	var all model.Deferred
	var positions []string
	for _, it := range p.deferredShapes() {
		all.Shapes, positions = all.Shapes+1, append(positions, it.position)
	}
	for _, g := range p.Gangs {
		if g.Deferred {
			all.Gangs, positions = all.Gangs+1, append(positions, g.Options[0][0].position)
		}
	}
	if len(positions) == 0 {
		return nil
	}
	all.Next = p.next(positions)
	return &all
}

// keepForDeferred keeps the idle workers while some demand is not planned: it was not asked whether it needs them.
func (p *Search) keepForDeferred(out *Outcome) {
	if len(p.DeferredItems()) == 0 {
		return
	}
	for i := range p.Nodes {
		// What a minimum keeps now, it may not keep beside this plan's launches.
		if p.overdue(&p.Nodes[i]) && out.Stays[i] == 0 {
			out.Stays[i] = Spared
		}
	}
}

// deferredShapes lists the shapes of requests and claims that are too many for this plan.
func (p *Search) deferredShapes() []*Item {
	all := slices.Clone(p.aside)
	for _, c := range p.Claims {
		all = append(all, c.aside...)
	}
	return slices.DeleteFunc(all, func(it *Item) bool { return !it.Deferred })
}

// DeferredItems lists what is too much for this plan.
func (p *Search) DeferredItems() []*Item {
	all := p.deferredShapes()
	for _, g := range p.Gangs {
		if g.Deferred {
			all = append(all, g.Items()...)
		}
	}
	return all
}
