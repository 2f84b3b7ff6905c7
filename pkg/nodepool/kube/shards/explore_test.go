package shards

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The model: a store that handles one call at a time, and members that may stop for any time between any two steps, so
// that a pause needs no step of its own. Calls wait in the network for any time, in any order, and may be lost. Time
// passes in ticks.
const (
	leaseTicks    = 4
	deadlineTicks = 2
	// actTicks is how long an act without a fence may take, such as a drain. Deadline and act end within a Lease.
	actTicks = 2
)

// rules can be taken out, to see that the explorer finds what each prevents.
type rules struct {
	noFence, noMargin, noReading, noWaiting, wallClock bool
	// patches: members also send patches. Without them, only the right to act is explored.
	patches bool
	// most limits how many members own keys at once, the oldest; 0 means all.
	most int
	// calls is how many calls a member makes in one tick, at most.
	members, keys, ticks, calls int
	// faults is how many calls each member gives up, at most.
	faults [3]int
	// all is how many calls each member makes in all ticks together, at most; 0 means any number.
	all [3]int
}

// call is one call in the network. Its effect on the store comes first, then its answer.
type call struct {
	kind              byte // w: write, d: delete
	write             Write
	asked             time.Duration
	target            Record
	version           string
	removed, conflict bool
	stored            bool // the store has handled it, and the answer is under way
}

// patch is a change of an object, on its way to the store.
type patch struct{ key, test, term string }

type process struct {
	member  *Member
	held    *Holdings
	call    *call
	late    *call // a call that was given up, and may still reach the store
	readDue bool  // a reading must follow
	calls   int
	faults  int
	made    int // of rules.all
	patch   *patch
	// acted is the last time at which the member could begin an act on a key, which may last for actTicks.
	acted   map[string]time.Duration
	step    time.Duration // of its wall clock
	crashed bool
}

// world is one state of everything.
type world struct {
	rules
	now     time.Duration
	names   []string
	version int
	records map[string]Record
	objects map[string]string // key -> term of the last writer
	history map[string][]string
	process []*process
	broken  string
}

func newWorld(r rules) *world {
	w := &world{rules: r, names: keysOf(r), records: map[string]Record{}, objects: map[string]string{}, history: map[string][]string{}}
	for i := range r.members {
		timing := Timing{leaseTicks, deadlineTicks}
		if r.noMargin {
			timing.Deadline = leaseTicks
		}
		id := string(rune('a' + i))
		w.process = append(w.process, &process{member: NewMember(id, timing, r.most), held: NewHoldings(id), acted: map[string]time.Duration{}})
	}
	return w
}

// keysOf returns keys of which each belongs to another member, the first to the last member.
func keysOf(r rules) []string {
	ids := []string{"a", "b", "c"}[:r.members]
	var names []string
	for i := 0; len(names) < r.keys; i++ {
		if name := fmt.Sprint("ml/", i); Owner(ids, name) == ids[r.members-1-len(names)%r.members] {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) clone() *world {
	c := *w
	c.records, c.objects, c.history = maps.Clone(w.records), maps.Clone(w.objects), maps.Clone(w.history)
	c.process = make([]*process, len(w.process))
	for i, p := range w.process {
		copied := *p
		m := *p.member
		m.seen, m.unanswered = maps.Clone(m.seen), slices.Clone(m.unanswered)
		copied.member = &m
		h := *p.held
		h.held = map[string]*hold{}
		for key, known := range p.held.held {
			held := *known
			h.held[key] = &held
		}
		copied.held, copied.acted = &h, maps.Clone(p.acted)
		if p.call != nil {
			one := *p.call
			copied.call = &one
		}
		c.process[i] = &copied
	}
	return &c
}

func (w *world) clock(p *process) time.Duration { return w.now + p.step }

// move is one possible next event.
type move struct {
	name string
	do   func(*world)
}

// moves lists everything that may happen next.
func (w *world) moves() []move {
	var moves []move
	if w.now < time.Duration(w.ticks) {
		moves = append(moves, move{"tick", func(w *world) { w.now++; w.refill() }})
	}
	for i, p := range w.process {
		on := func(what string, do func(*world, *process)) {
			moves = append(moves, move{p.member.id + " " + what, func(w *world) { do(w, w.process[i]) }})
		}
		if p.patch != nil {
			on("patch arrives", (*world).patchArrives)
		}
		if p.late != nil {
			on("late call arrives", func(w *world, p *process) { w.handle(p.late, p.member.id); p.late = nil })
		}
		if p.crashed {
			continue
		}
		if w.wallClock && p.step == 0 {
			on("clock steps back", func(_ *world, p *process) { p.step = -leaseTicks })
		}
		w.protocolMoves(i, p, on)
		w.patchMoves(p, on)
	}
	return moves
}

// refill lets each process make calls in the new tick.
func (w *world) refill() {
	for _, p := range w.process {
		p.calls = 0
	}
}

// protocolMoves are the steps of the loop that keeps the Lease: write, read, and remove what expired, one call after
// the other. A call that is given up is lost if another is given up later.
func (w *world) protocolMoves(i int, p *process, on func(string, func(*world, *process))) {
	if c := p.call; c != nil {
		if c.stored {
			on("gets an answer", (*world).answered)
		} else {
			on("call arrives", func(w *world, p *process) { w.handle(p.call, p.member.id) })
		}
		if p.faults >= w.faults[i] {
			return
		}
		on("gives a call up", func(_ *world, p *process) {
			p.faults++
			if !p.call.stored {
				p.late = p.call
			}
			p.call, p.readDue = nil, true
		})
		return
	}
	if p.calls >= w.calls || w.all[i] > 0 && p.made >= w.all[i] {
		return
	}
	if p.readDue {
		on("reads", (*world).read)
		return
	}
	on("writes", func(w *world, p *process) { w.write(p, false) })
	if w.drops(p) {
		on("renews while it still acts", func(w *world, p *process) { w.write(p, true) })
	}
	for n, r := range p.member.Expired(w.clock(p)) {
		on("removes "+r.ID, func(w *world, p *process) {
			p.calls, p.made = p.calls+1, p.made+1
			p.call = &call{kind: 'd', target: p.member.Expired(w.clock(p))[n]}
		})
	}
}

// drops reports whether the next write of a member gives up keys on which it may still act.
func (w *world) drops(p *process) bool {
	return slices.ContainsFunc(w.names, func(key string) bool {
		at, acted := p.acted[key]
		return acted && w.now <= at+actTicks && Owner(p.member.live, key) != p.member.id
	})
}

func (w *world) write(p *process, acting bool) {
	p.calls, p.made = p.calls+1, p.made+1
	out := p.member.Next()
	p.held.Drop(p.member.Owns)
	if acting {
		out = p.member.Renewal()
	} else if !w.noWaiting {
		maps.DeleteFunc(p.acted, func(key string, _ time.Duration) bool { return !p.held.Holds(key) })
	}
	p.member.Sent(out)
	p.call = &call{kind: 'w', write: out, asked: w.clock(p)}
}

func (w *world) read(p *process) {
	p.calls, p.made = p.calls+1, p.made+1
	p.readDue = false
	records := slices.SortedFunc(maps.Values(w.records), func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	p.member.Read(records, w.clock(p))
	p.held.Update(w.names, p.member.Owns)
}

// handle is the store: it compares versions, as the API server does.
func (w *world) handle(c *call, id string) {
	c.stored = true
	switch known, exists := w.records[id]; {
	case c.kind == 'd':
		if r, exists := w.records[c.target.ID]; exists && r.Version == c.target.Version {
			delete(w.records, c.target.ID)
		}
	case !exists && c.write.Version != "":
		c.removed = true
	case exists && known.Version != c.write.Version:
		c.conflict = true
	default:
		w.version++
		c.version = strconv.Itoa(w.version)
		since := known.Since
		if !exists {
			since = int64(w.now)
		}
		w.records[id] = Record{ID: id, Version: c.version, Since: since, Members: c.write.Members}
	}
}

func (w *world) answered(p *process) {
	c := p.call
	p.call, p.readDue = nil, true
	switch {
	case c.kind == 'd', c.conflict:
	case c.removed:
		p.member.Removed()
		p.held.Drop(p.member.Owns)
	default:
		p.member.Written(c.write, c.version, c.asked)
		if w.noReading {
			p.member.confirmed = p.member.stored
			p.held.Update(w.names, p.member.Owns)
		}
	}
}

// patchMoves are patches of keys that the process may act on by its own knowledge.
func (w *world) patchMoves(p *process, on func(string, func(*world, *process))) {
	if !w.patches || p.patch != nil {
		return
	}
	for _, key := range w.names {
		if w.mayAct(p, key) {
			on("patches "+key, func(w *world, p *process) { w.sendPatch(p, key) })
		}
	}
}

func (w *world) mayAct(p *process, key string) bool {
	return !p.crashed && p.member.Left(w.clock(p)) > 0 && p.held.Holds(key)
}

// check notes who may begin an act now, and whether another may still be in one.
func (w *world) check() {
	for _, key := range w.names {
		for _, p := range w.process {
			if !w.mayAct(p, key) {
				continue
			}
			p.acted[key] = w.now
			for _, other := range w.process {
				if at, acted := other.acted[key]; other != p && acted && w.now <= at+actTicks {
					w.broken = fmt.Sprintf("%s and %s both act on %s", p.member.id, other.member.id, key)
				}
			}
		}
	}
}

func (w *world) sendPatch(p *process, key string) {
	stored := w.objects[key]
	term, may := p.held.Fence(key, stored)
	if w.noFence {
		term, may = p.held.held[key].term, true
	}
	if may {
		p.patch = &patch{key, stored, term}
	}
}

func (w *world) patchArrives(p *process) {
	sent := *p.patch
	p.patch = nil
	if !w.noFence && w.objects[sent.key] != sent.test {
		p.held.Rejected(sent.key, sent.term, sent.test)
		return
	}
	w.objects[sent.key] = sent.term
	history := w.history[sent.key]
	switch at := slices.Index(history, sent.term); {
	case at < 0:
		w.history[sent.key] = append(slices.Clip(history), sent.term)
	case at != len(history)-1:
		w.broken = fmt.Sprintf("%s: %v writes after %v", sent.key, sent.term, history)
	}
}

// state is a hash that two worlds have in common if the same may happen in both.
func (w *world) state() uint64 {
	d := &digest{}
	d.SetSeed(exploreSeed)
	d.number(int64(w.now))
	for _, key := range w.names {
		d.texts(w.history[key]...)
		d.texts(w.objects[key])
	}
	for _, p := range w.process {
		r := w.records[p.member.id]
		d.record(&r)
	}
	for _, p := range w.process {
		w.hashProcess(d, p)
	}
	return d.Sum64()
}

func (w *world) hashProcess(d *digest, p *process) {
	m := p.member
	d.texts(m.version)
	for _, list := range [][]string{m.stored, m.intended, m.confirmed, m.live} {
		d.texts(list...)
	}
	d.number(int64(m.renewed), int64(len(m.unanswered)), int64(p.calls), int64(min(p.faults, 3)), int64(m.readAt), int64(p.made), int64(p.step), flag(p.readDue), flag(p.crashed))
	for _, list := range m.unanswered {
		d.texts(list...)
	}
	for i := range m.others {
		d.record(&m.others[i])
		d.number(int64(m.seen[m.others[i].ID].at))
	}
	for _, c := range []*call{p.call, p.late} {
		d.number(flag(c != nil))
		if c != nil {
			d.number(int64(c.kind), int64(c.asked), flag(c.stored), flag(c.removed), flag(c.conflict))
			d.texts(c.write.Version, c.version, c.target.ID, c.target.Version)
			d.texts(c.write.Members...)
		}
	}
	if p.patch != nil {
		d.texts(p.patch.key, p.patch.test, p.patch.term)
	}
	for _, key := range w.names {
		at, acted := p.acted[key]
		d.number(int64(min(w.now-at, actTicks+1)), flag(acted))
		if h := p.held.held[key]; h != nil {
			d.texts(h.term, h.from)
			d.number(int64(h.tries), flag(h.lost))
		}
	}
}

var exploreSeed = maphash.MakeSeed()

type digest struct{ maphash.Hash }

func (d *digest) texts(texts ...string) {
	_ = d.WriteByte(byte(len(texts)))
	for _, text := range texts {
		_, _ = d.WriteString(text)
		_ = d.WriteByte(0)
	}
}

func (d *digest) number(numbers ...int64) {
	for _, n := range numbers {
		_ = d.WriteByte(byte(n))
	}
}

func (d *digest) record(r *Record) {
	d.texts(r.ID, r.Version)
	d.number(r.Since)
	d.texts(r.Members...)
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
