package planner

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// ledger says what is free where, while demand is being placed. A trial works on a clone; dropping the clone undoes it.
type ledger struct {
	lots []lot
	caps
	// room counts the pods that each group may still launch, spare those that all may launch together.
	room  []int64
	spare int64
	// launched counts the pods launched since the ledger was opened.
	launched []int64
	// how says by what new nodes are chosen.
	how strategy
	// stepwise: empty nodes are hidden until a step needs them.
	stepwise bool
	// joinable: something was launched for that could have been answered jointly.
	joinable bool
	log      []entry
	// waits lists what was placed on pods that were asked for earlier and have not joined yet.
	waits []wait
	// ceilings bound what pools of nodes hold, nil where none does: taken is in their units, pods counts those of each group.
	ceilings    *fleet.Ceilings
	taken, pods []int64
	// runs lists the gangs that were placed.
	runs []run
	// traces lists what was placed where, if tracing.
	traces  []placement
	tracing bool
}

// lot is a number of nodes that are equal in all that matters, so that work depends on how many kinds of nodes there
// are and not on how many nodes.
type lot struct {
	shape *vector.Shape
	phase fleet.Phase
	free  vector.Vector
	// size is free as one number when the ledger was opened; it only orders lots.
	size  float64
	count int64
	// members are the nodes' numbers in the roster, those to be used first in front; nil for pods that have no node yet.
	members []int
	// since is when the oldest pod of a lot on its way was asked for; zero where that is not known.
	since time.Time
	// touched: some demand was placed here in this plan.
	touched bool
	// hidden: not offered yet.
	hidden bool
	// planned marks pods that this plan launches.
	planned bool
	// named are the resources that this demand asks for.
	named nameSet
	// gang names the strictly spread gangs that were placed here last, by their turn, and taken counts their bundles on each
	// node; placed lists the gangs that held one before, by their number in the snapshot.
	gang   int
	taken  int64
	placed []int
}

// entry records demand placed on planned pods: it is why they are launched.
type entry struct {
	group   int
	purpose string
	item    *vector.Item
	count   int64
}

// wait records demand placed on pods that were asked for before this plan.
type wait struct {
	item  *vector.Item
	count int64
	since time.Time
}

// copyFrom makes l equal to other. It uses the memory that l has already.
func (l *ledger) copyFrom(other *ledger) {
	l.lots = append(l.lots[:0], other.lots...)
	l.room = append(l.room[:0], other.room...)
	l.launched = append(l.launched[:0], other.launched...)
	l.log = append(l.log[:0], other.log...)
	l.waits = append(l.waits[:0], other.waits...)
	l.runs = append(l.runs[:0], other.runs...)
	l.traces, l.tracing = append(l.traces[:0], other.traces...), other.tracing
	l.ceilings, l.taken, l.pods = other.ceilings, append(l.taken[:0], other.taken...), append(l.pods[:0], other.pods...)
	l.caps.copyFrom(&other.caps)
	l.spare, l.how, l.stepwise, l.joinable = other.spare, other.how, other.stepwise, other.joinable
}

// trial returns a copy of a ledger to try something on. Hundreds of gangs are tried on thousands of lots, so what is
// released is used again.
func (p *Placer) trial(l *ledger) *ledger {
	copied := &ledger{}
	if n := len(p.released); n > 0 {
		copied, p.released = p.released[n-1], p.released[:n-1]
	}
	copied.copyFrom(l)
	return copied
}

// release gives up a ledger that nobody will look at again. nil is allowed.
func (p *Placer) release(l *ledger) {
	if l != nil {
		p.released = append(p.released, l)
	}
}

// openLedger lists the nodes that stay and the pods that were asked for. With totals set, work in progress is
// ignored: that is how request_resources counts. Equal nodes become one lot before anything is sorted.
func (p *Placer) openLedger(totals bool, placed [][]int) []lot {
	lots := make([]lot, 0, min(len(p.Nodes)+len(p.Groups), 256))
	kinds := make(map[string]int)
	var key []byte
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Stop != "" {
			continue
		}
		l := lot{shape: n.Shape, phase: p.PhaseOf(n), free: n.Free, count: 1, members: []int{i}, since: n.Since}
		if totals {
			l.free = n.Shape.Total
		}
		if placed != nil {
			l.placed = placed[i]
		}
		key = l.appendKey(key[:0])
		at, known := kinds[string(key)]
		if !known {
			kinds[string(key)] = len(lots)
			l.size = p.SizeOn(l.shape, l.free)
			lots = append(lots, l)
			continue
		}
		lots[at].count++
		lots[at].members = append(lots[at].members, i)
		lots[at].since = model.Earliest(lots[at].since, l.since)
	}
	for i := range p.Groups {
		if g := &p.Groups[i]; g.Missing > 0 {
			lots = append(lots, p.freshLot(g, g.Missing, false))
		}
	}
	for i := range lots {
		p.busyLastFirst(lots[i].members)
	}
	return p.inOrder(lots)
}

// appendKey writes what makes two lots of nodes equal.
func (l *lot) appendKey(key []byte) []byte {
	key = binary.AppendVarint(key, int64(l.phase))
	key = binary.AppendVarint(key, int64(l.shape.Group))
	key = binary.AppendVarint(key, int64(l.shape.Labels))
	for _, amount := range l.free {
		key = binary.AppendVarint(key, int64(amount))
	}
	for _, amount := range l.shape.Total {
		key = binary.AppendVarint(key, int64(amount))
	}
	for _, gang := range l.placed {
		key = binary.AppendVarint(key, int64(gang))
	}
	return key
}

// busyLastFirst sorts equal nodes so that those that were busy last are used first, and others may leave.
func (p *Placer) busyLastFirst(nodes []int) {
	slices.SortFunc(nodes, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Nodes[a].IdleSeconds, p.Nodes[b].IdleSeconds), cmp.Compare(a, b))
	})
}

func (p *Placer) freshLot(g *fleet.Group, count int64, planned bool) lot {
	return lot{shape: g.Shape, phase: fleet.OnTheWay, free: g.Shape.Total, size: p.SizeOn(g.Shape, g.Shape.Total), count: count, planned: planned}
}

// inOrder sorts lots. They are large, so it is their places that are moved about.
func (p *Placer) inOrder(lots []lot) []lot {
	order := make([]*lot, len(lots))
	for i := range lots {
		order[i] = &lots[i]
	}
	slices.SortFunc(order, p.soonestFirst)
	sorted := make([]lot, len(lots), len(lots)+len(lots)/4+len(p.Groups))
	for i, l := range order {
		sorted[i] = *l
	}
	return sorted
}

// soonestFirst orders lots by when they can serve, then tightest first, which leaves large gaps whole; idle nodes
// that were busy last come before those that are about to leave.
func (p *Placer) soonestFirst(a, b *lot) int {
	if c := cmp.Compare(a.phase, b.phase); c != 0 {
		return c
	}
	if c := cmp.Compare(a.size, b.size); c != 0 {
		return c
	}
	// The rest decides between lots of one size alone.
	return cmp.Or(
		slices.Compare(a.free, b.free),
		cmp.Compare(a.shape.Group, b.shape.Group),
		cmp.Compare(a.shape.Labels, b.shape.Labels),
		slices.Compare(a.shape.Total, b.shape.Total),
		slices.Compare(a.placed, b.placed),
		cmp.Compare(p.idleFor(a), p.idleFor(b)),
	)
}

func (p *Placer) idleFor(l *lot) float64 {
	if len(l.members) == 0 {
		return math.Inf(1)
	}
	return p.Nodes[l.members[0]].IdleSeconds
}

// launch books new pods of a group and returns them as a lot that is not on the ledger yet.
func (l *ledger) launch(g *fleet.Group, count int64) lot {
	i := g.Shape.Group
	l.room[i] -= count
	l.spare -= count
	l.launched[i] += count
	l.occupy(i, count)
	return lot{shape: g.Shape, phase: fleet.OnTheWay, free: g.Shape.Total, count: count, planned: true}
}

// split takes count nodes from lot i and returns where they stand: in front of the rest, so that nodes in use are
// offered again before untouched ones.
func (l *ledger) split(i int, count int64) int {
	if l.lots[i].count == count {
		return i
	}
	taken := l.lots[i]
	taken.count = count
	rest := &l.lots[i]
	rest.count -= count
	if taken.members != nil {
		taken.members, rest.members = taken.members[:count:count], rest.members[count:]
	}
	l.lots = slices.Insert(l.lots, i, taken)
	return i
}
