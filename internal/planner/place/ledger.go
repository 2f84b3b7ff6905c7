package place

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
)

// Ledger records what is free on which nodes while demand is placed. A trial works on a clone; dropping the clone
// undoes the trial.
type Ledger struct {
	classes []NodeClass
	limits
	// launched counts the pods launched since the ledger was opened.
	launched []int64
	// how is the strategy for choosing new nodes.
	how Strategy
	// stepwise: empty nodes are hidden until a step needs them.
	stepwise bool
	// log lists what was placed on pods that have not joined; with tracing, on all nodes.
	log     []Placement
	tracing bool
	// runs lists the gangs that were placed.
	runs []Run
}

// NodeClass is a number of nodes that are equal for planning, so that work depends on the number of kinds of nodes, not
// on the number of nodes.
type NodeClass struct {
	Shape *Shape
	phase Phase
	free  Vector
	// size is what was free when the ledger was opened, as one number. It only orders node classes.
	size  float64
	count int64
	// members are the nodes' numbers in the fleet, those to use first in front; nil for pods that have no node yet.
	members []int
	// since is when the oldest pod of a node class on its way was requested; zero if unknown.
	since time.Time
	// touched: this plan placed demand here.
	touched bool
	// used: demand was placed here before the ledger was opened again for warm capacity.
	used bool
	// hidden: not offered yet.
	hidden bool
	// planned marks pods that this plan launches.
	planned bool
	// named are the resources that demand placed here asks for.
	named nameSet
	// gang is the turn of the strictly spread gangs that were last placed here, and taken counts their bundles on each
	// node. placed lists the gangs that held a bundle here before, by number in the snapshot.
	gang   int
	taken  int64
	placed []int
}

// Run is a number of equal gangs that were placed together by one option. The placement is booked under the items of
// the first gang.
type Run struct {
	Gangs  []*Gang
	Option int
	Within Domain
}

// copyFrom makes l equal to other. It reuses the memory of l.
func (l *Ledger) copyFrom(other *Ledger) {
	l.classes = append(l.classes[:0], other.classes...)
	l.launched = append(l.launched[:0], other.launched...)
	l.log = append(l.log[:0], other.log...)
	l.runs = append(l.runs[:0], other.runs...)
	l.limits.copyFrom(&other.limits)
	l.tracing, l.how, l.stepwise = other.tracing, other.how, other.stepwise
}

// trial returns a copy of a ledger for a trial. Hundreds of gangs are tried on thousands of node classes, so released
// ledgers are reused.
func (p *Search) trial(l *Ledger) *Ledger {
	copied := &Ledger{}
	if n := len(p.released); n > 0 {
		copied, p.released = p.released[n-1], p.released[:n-1]
	}
	copied.copyFrom(l)
	return copied
}

// release returns a ledger that is no longer used. nil is allowed.
func (p *Search) release(l *Ledger) {
	if l != nil {
		p.released = append(p.released, l)
	}
}

// counting is what counts as free when a ledger is opened.
type counting int

const (
	// countUnused counts what no work uses.
	countUnused counting = iota
	// countTotals ignores work in progress, as request_resources does. countSettled also ignores which nodes are idle
	// and for how long, so that consecutive plans report the same assignments.
	countTotals
	countSettled
)

// openLedger lists the nodes that stay and the pods that were requested. It merges equal nodes into one node class
// before it sorts.
func (p *Search) openLedger(what counting, placed [][]int) []NodeClass {
	classes := make([]NodeClass, 0, min(len(p.Nodes)+len(p.Groups), 256))
	kinds := make(map[string]int)
	var key []byte
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Stop != "" || n.State == model.Pending && n.GroupIndex >= 0 && p.Groups[n.GroupIndex].Excluded() {
			continue
		}
		l := NodeClass{Shape: n.Shape, phase: p.phaseOf(n), free: n.Free, count: 1, members: []int{i}, since: n.Since}
		if what >= countTotals {
			l.free = n.Shape.Total
		}
		if what == countSettled && l.phase < OnTheWay {
			l.phase = running
		}
		if placed != nil {
			l.placed = placed[i]
		}
		key = l.appendKey(key[:0])
		at, known := kinds[string(key)]
		if !known {
			kinds[string(key)] = len(classes)
			l.size = p.sizeOn(l.Shape, l.free)
			classes = append(classes, l)
			continue
		}
		classes[at].count++
		classes[at].members = append(classes[at].members, i)
		classes[at].since = model.Earliest(classes[at].since, l.since)
	}
	for i := range p.Groups {
		if g := &p.Groups[i]; g.Missing > 0 {
			classes = append(classes, hostClasses(g, g.Missing, false)...)
		}
	}
	for i := range classes {
		if what != countSettled { // nodes that were busy last are used first, so that the others can stop
			slices.SortFunc(classes[i].members, func(a, b int) int {
				return cmp.Or(cmp.Compare(p.Nodes[a].IdleSeconds, p.Nodes[b].IdleSeconds), cmp.Compare(a, b))
			})
		}
	}
	return p.inOrder(classes)
}

// appendKey appends what equal nodes have in common.
func (l *NodeClass) appendKey(key []byte) []byte {
	key = binary.AppendVarint(key, int64(l.phase))
	key = binary.AppendVarint(key, int64(l.Shape.group))
	key = binary.AppendVarint(key, int64(l.Shape.Labels))
	for _, amount := range l.free {
		key = binary.AppendVarint(key, int64(amount))
	}
	for _, amount := range l.Shape.Total {
		key = binary.AppendVarint(key, int64(amount))
	}
	for _, gang := range l.placed {
		key = binary.AppendVarint(key, int64(gang))
	}
	return key
}

// hostClasses returns new pods of a group: of each replica the first host, and the others.
func hostClasses(g *Group, count int64, planned bool) []NodeClass {
	firsts := count
	if g.others != nil {
		firsts = count / g.Hosts
	}
	var all []NodeClass
	add := func(s *Shape, n int64) {
		if n > 0 {
			all = append(all,
				NodeClass{Shape: s, phase: OnTheWay, free: s.Total, size: s.size, count: n, planned: planned})
		}
	}
	add(g.Shape, firsts)
	add(g.others, count-firsts)
	return all
}

// inOrder sorts node classes. They are large, so it moves indexes instead.
func (p *Search) inOrder(classes []NodeClass) []NodeClass {
	order := make([]*NodeClass, len(classes))
	for i := range classes {
		order[i] = &classes[i]
	}
	slices.SortFunc(order, p.soonestFirst)
	sorted := make([]NodeClass, len(classes), len(classes)+len(classes)/4+len(p.Groups))
	for i, l := range order {
		sorted[i] = *l
	}
	return sorted
}

// soonestFirst orders node classes by when they can serve, then tightest first, which keeps large gaps whole. Idle
// nodes that were busy last come before those that are about to stop.
func (p *Search) soonestFirst(a, b *NodeClass) int {
	if c := cmp.Compare(a.phase, b.phase); c != 0 {
		return c
	}
	if c := cmp.Compare(a.size, b.size); c != 0 {
		return c
	}
	// The rest only orders node classes of equal size.
	return cmp.Or(
		slices.Compare(a.free, b.free),
		cmp.Compare(a.Shape.group, b.Shape.group),
		cmp.Compare(p.setKeys[a.Shape.Labels], p.setKeys[b.Shape.Labels]),
		slices.Compare(a.Shape.Total, b.Shape.Total),
		slices.Compare(a.placed, b.placed),
		cmp.Compare(p.idleFor(a), p.idleFor(b)),
	)
}

func (p *Search) idleFor(l *NodeClass) float64 {
	if len(l.members) == 0 {
		return math.Inf(1)
	}
	return p.Nodes[l.members[0]].IdleSeconds
}

// launch books new pods of a group and returns them as node classes that are not on the ledger yet.
func (l *Ledger) launch(g *Group, count int64) []NodeClass {
	i := g.Shape.group
	l.room[i] -= count
	l.spare -= count
	l.launched[i] += count
	l.occupy(i, count)
	return hostClasses(g, count, true)
}

// split takes count nodes from node class i and returns their index: in front of the rest, so that used nodes are
// offered before unused ones.
func (l *Ledger) split(i int, count int64) int {
	if l.classes[i].count == count {
		return i
	}
	taken := l.classes[i]
	taken.count = count
	rest := &l.classes[i]
	rest.count -= count
	if taken.members != nil {
		taken.members, rest.members = taken.members[:count:count], rest.members[count:]
	}
	l.classes = slices.Insert(l.classes, i, taken)
	return i
}

// Placement is bundles of one item on nodes of one kind. Each node has the same number of them.
type Placement struct {
	Item *Item
	// Count is the number of bundles, Each that on one node. Used is how many of them are assigned already. Opened
	// counts the pods of this plan that nothing before used.
	Count, Each, Used, Opened int64
	*Site
}

// Site is the nodes of placements, and what they are for. Ledgers are copied often, so placements share it.
type Site struct {
	Purpose string
	Group   int
	Phase   Phase
	// Planned: on pods that this plan launches. fresh: they were launched for it.
	Planned, fresh bool
	// Members are the nodes' numbers; nil for pods that have no node yet.
	Members []int
	// Since is when the oldest pod on its way was requested; zero if unknown.
	Since time.Time
}

// open opens a ledger on which the given pods are on their way. They are in the order of the next snapshot, so that the
// next plan finds the same places: after equal pods that were requested earlier.
func (p *Search) open(classes []NodeClass, given []int64) *Ledger {
	l := &Ledger{classes: slices.Clone(classes), launched: make([]int64, len(p.Groups))}
	for i := range p.Groups {
		if given[i] > 0 {
			p.insert(l, hostClasses(&p.Groups[i], given[i], true))
		}
	}
	p.bindLimits(l, given)
	return l
}

// insert adds node classes, each after equal ones.
func (p *Search) insert(l *Ledger, classes []NodeClass) {
	for _, class := range classes {
		at, _ := slices.BinarySearchFunc(l.classes, class,
			func(a, b NodeClass) int { return cmp.Or(p.soonestFirst(&a, &b), -1) })
		l.classes = slices.Insert(l.classes, at, class)
	}
}

// launchMinimum launches pods until every group is at its minimum. These pods serve demand like any other, in the order
// in which the next plan finds them on their way.
func (p *Search) launchMinimum(l *Ledger, given []int64) {
	for i := range p.Groups {
		g := &p.Groups[i]
		short := RoundUp(max(0, g.MinPods-g.Remaining()-given[i]), g.Hosts)
		n := min(short, l.room[i], l.spare)
		if n -= n % g.Hosts; n > 0 {
			p.insert(l, l.launch(g, n))
		}
	}
}

// note logs what was placed on the nodes of a node class. unused: nothing was placed there before.
func (l *Ledger) note(b *Batch, at *NodeClass, portions []portion, unused, fresh bool) {
	if at.phase != OnTheWay && !l.tracing {
		return
	}
	on := &Site{b.purpose, at.Shape.group, at.phase, at.planned, fresh, at.members, at.since}
	for k, p := range portions {
		made := Placement{Item: b.items[p.item], Count: p.count * at.count, Each: p.count, Site: on}
		if unused && at.planned && k == 0 {
			made.Opened = at.count
		}
		l.log = append(l.log, made)
	}
}

// hide holds empty nodes back until a step needs them.
func (l *Ledger) hide() {
	l.stepwise = true
	for i := range l.classes {
		class := &l.classes[i]
		class.hidden = class.phase != running && class.Shape.group != HeadGroup && !class.touched &&
			slices.Equal(class.free, class.Shape.Total)
	}
}

// hiddenOf counts the hidden nodes of each group.
func (l *Ledger) hiddenOf(groups int) []int64 {
	counts := make([]int64, groups)
	for i := range l.classes {
		if class := &l.classes[i]; class.hidden {
			counts[class.Shape.group] += class.count
		}
	}
	return counts
}

// reveal offers n more nodes of a group to all demand that is placed from now on.
func (l *Ledger) reveal(group int, n int64) {
	for i := 0; i < len(l.classes) && n > 0; i++ {
		if !l.classes[i].hidden || l.classes[i].Shape.group != group {
			continue
		}
		count := min(n, l.classes[i].count)
		l.classes[l.split(i, count)].hidden = false
		n -= count
	}
}

// revealMinimum offers the nodes that a minimum keeps in any case.
func (p *Search) revealMinimum(l *Ledger) {
	short := make([]int64, len(p.Groups))
	for i := range p.Groups {
		short[i] = p.Groups[i].MinPods
	}
	for i := range l.classes {
		if class := &l.classes[i]; class.Shape.group != HeadGroup && !class.hidden {
			short[class.Shape.group] -= class.count
		}
	}
	for i, n := range short {
		l.reveal(i, n)
	}
}

// holdsBack reports whether nodes of a group are hidden.
func (l *Ledger) holdsBack(group int) bool {
	return l.stepwise &&
		slices.ContainsFunc(l.classes, func(class NodeClass) bool { return class.hidden && class.Shape.group == group })
}
