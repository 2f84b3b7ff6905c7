package shards

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// explore visits every world that can follow, breadth first, so that a fault is found by a shortest way. It returns the
// way to the first fault, nil if there is none, and the number of worlds.
func explore(start *world, most int) (way []string, worlds int) {
	type node struct {
		w    *world
		from int
		name string
	}
	nodes := []node{{w: start, from: -1}}
	seen := map[uint64]bool{start.state(): true}
	for i := 0; i < len(nodes) && len(nodes) < most; i++ {
		w := nodes[i].w
		nodes[i].w = nil // its moves are what is needed of it
		for _, m := range w.moves() {
			next := w.clone()
			m.do(next)
			next.check()
			state := next.state()
			if seen[state] {
				continue
			}
			seen[state] = true
			nodes = append(nodes, node{next, i, m.name})
			if next.broken != "" {
				way := []string{next.broken}
				for at := len(nodes) - 1; at > 0; at = nodes[at].from {
					way = append(way, nodes[at].name)
				}
				slices.Reverse(way)
				return way, len(nodes)
			}
		}
	}
	return nil, len(nodes)
}

// settle lets everything work without faults: calls arrive at once, and members take turns.
func (w *world) settle(ticks int) {
	for range ticks {
		for i, p := range w.process {
			if p.crashed {
				continue
			}
			for range 8 {
				w.serve(i)
			}
		}
		w.now++
		w.refill()
	}
}

// serve makes one step of a member's loop.
func (w *world) serve(i int) {
	p := w.process[i]
	if p.late != nil {
		w.handle(p.late, p.member.id)
		p.late = nil
	}
	if p.patch != nil {
		w.patchArrives(p)
	}
	switch expired := p.member.Expired(w.clock(p)); {
	case p.call != nil:
		if !p.call.stored {
			w.handle(p.call, p.member.id)
		}
		w.answered(p)
	case p.readDue:
		w.read(p)
	case len(expired) > 0:
		p.call = &call{kind: 'd', target: expired[0]}
	default:
		w.write(p, false)
	}
	w.check()
}

// settled returns a world in which the members divide the keys.
func settled(r rules) *world {
	w := newWorld(r)
	w.begin()
	return w
}

// begin lets the members divide the keys.
func (w *world) begin() {
	w.settle(3)
	// Begin at zero, so that the bound on ticks is one on what follows.
	for _, p := range w.process {
		p.member.renewed -= w.now
		p.member.readAt -= w.now
		p.calls, p.made, p.faults = 0, 0, 0
		for id, seen := range p.member.seen {
			p.member.seen[id] = sighting{seen.version, seen.at - w.now}
		}
		for key := range p.acted {
			p.acted[key] -= w.now
		}
	}
	for id, r := range w.records {
		r.Since -= int64(w.now)
		w.records[id] = r
	}
	w.now = 0
}

// holders returns the members that may act on a key.
func (w *world) holders(key string) []string {
	var holders []string
	for _, p := range w.process {
		if !p.crashed && p.member.Left(w.clock(p)) > 0 && p.held.Holds(key) {
			holders = append(holders, p.member.id)
		}
	}
	return holders
}

func TestInEveryOrderOfEventsOneMemberActsOnAKeyAndTermsNeverInterleave(t *testing.T) {
	starts := map[string]*world{
		"two members join at once":                newWorld(rules{members: 2, keys: 1, ticks: 0, calls: 6, faults: [3]int{1, 1}}),
		"one joins another":                       joining(rules{members: 2, keys: 1, ticks: 0, calls: 5, faults: [3]int{1, 1}}),
		"one joins another, with writes":          joining(rules{members: 2, keys: 1, ticks: 0, calls: 4, faults: [3]int{1, 1}, patches: true}),
		"two join at once, one may own":           newWorld(rules{members: 2, keys: 1, most: 1, ticks: 0, calls: 6, faults: [3]int{1, 1}}),
		"the one of two that may own may be lost": settled(rules{members: 2, keys: 1, most: 1, ticks: 5, calls: 4, faults: [3]int{1, 0}, all: [3]int{2, 9}}),
		"one of two may be lost":                  settled(rules{members: 2, keys: 1, ticks: 5, calls: 4, faults: [3]int{0, 1}, all: [3]int{9, 2}}),
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && start.ticks > 0 {
				t.Skip("a million worlds take a quarter of a minute")
			}
			const most = 2_000_000
			way, worlds := explore(start, most)
			if way != nil {
				t.Errorf("broken by:\n%s", strings.Join(way, "\n"))
			}
			if worlds >= most {
				t.Errorf("more than %d worlds: not all were explored", most)
			}
			t.Logf("%d worlds", worlds)
		})
	}
}

// joining returns a world in which the first member owns everything, and the others begin.
func joining(r rules) *world {
	alone := r
	alone.members = 1
	w := newWorld(alone)
	w.names = keysOf(r)
	w.begin()
	w.process = append(w.process, newWorld(r).process[1:]...)
	w.rules, w.names = r, keysOf(r)
	return w
}

func TestTheExplorerFindsWhatEachRulePrevents(t *testing.T) {
	tests := map[string]struct {
		start *world
		find  string
	}{
		"the fence":   {joining(rules{members: 2, keys: 1, ticks: 2, calls: 4, noFence: true, patches: true, faults: often}), "writes after"},
		"the margin":  {settled(rules{members: 2, keys: 1, ticks: 8, calls: 2, noMargin: true, faults: often}), "both act"},
		"the reading": {newWorld(rules{members: 2, keys: 1, ticks: 3, calls: 4, noReading: true, faults: often}), "both act"},
		"the waiting": {joining(rules{members: 2, keys: 1, ticks: 3, calls: 4, noWaiting: true, faults: often}), "both act"},
		"the monotonic clock": {
			settled(rules{members: 2, keys: 1, ticks: 8, calls: 2, wallClock: true, faults: often}), "both act",
		},
	}
	for name, test := range tests {
		t.Run("without "+name, func(t *testing.T) {
			way := search(test.start, test.find)
			if way == nil {
				t.Fatal("no fault found")
			}
			t.Logf("%d steps: %s", len(way)-1, strings.Join(way, "; "))
		})
	}
}

// often is more faults than any walk has.
var often = [3]int{1000, 1000, 1000}

// search looks for a fault by random walks.
func search(start *world, find string) []string {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		w := start.clone()
		if way := walk(w, random, 80); strings.Contains(w.broken, find) {
			return append(way, w.broken)
		}
	}
	return nil
}

// walk makes random moves until a fault, or until steps are made.
func walk(w *world, random *rand.Rand, steps int) (way []string) {
	for range steps {
		moves := w.moves()
		if len(moves) == 0 || w.broken != "" {
			break
		}
		m := moves[random.IntN(len(moves))]
		m.do(w)
		w.check()
		way = append(way, m.name)
	}
	return way
}

func TestRandomFaultsOfThreeMembersBreakNothingAndAreOvercome(t *testing.T) {
	walks := 20_000
	if testing.Short() {
		walks = 2_000
	}
	for seed := range walks {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		r := rules{members: 3, keys: 3, most: random.IntN(3), ticks: 40, calls: 3, patches: true, faults: often}
		w := settled(r)
		if random.IntN(3) == 0 {
			w = joining(r)
		}
		way := walk(w, random, 60+random.IntN(200))
		if random.IntN(2) == 0 {
			w.process[random.IntN(3)].crashed = true
		}
		if w.broken != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.broken, strings.Join(way, "\n"))
		}
		w.settle(3 * leaseTicks)
		for _, key := range w.names {
			if holders := w.holders(key); len(holders) != 1 {
				t.Fatalf("seed %d: %d ticks after the last fault %s is held by %v\n%s", seed, 3*leaseTicks, key, holders,
					strings.Join(way, "\n"))
			}
		}
	}
}

func TestOnlyTheShareOfAMemberMovesWhenItJoinsOrLeaves(t *testing.T) {
	four := []string{"a-7d9f", "b-x2k1", "c-99zz", "d-0001"}
	counts, moved := map[string]int{}, 0
	const keys = 20_000
	for i := range keys {
		key := fmt.Sprintf("team-%d/cluster-%d", i%50, i)
		before, after := Owner(four[:3], key), Owner(four, key)
		counts[after]++
		if before != after {
			moved++
			if after != four[3] {
				t.Fatalf("%s moved from %s to %s when %s joined", key, before, after, four[3])
			}
		}
	}
	for member, n := range counts {
		if n < keys/4*9/10 || n > keys/4*11/10 {
			t.Errorf("%s owns %d of %d keys, want a quarter", member, n, keys)
		}
	}
	t.Logf("%d of %d keys moved to the fourth member: %v", moved, keys, counts)
}

// TestScoresStay guards the hash: replicas of two versions must agree.
func TestScoresStay(t *testing.T) {
	if got := score("heliostat-1", "ml/llm"); got != 842810253940927742 {
		t.Errorf("score is %d", got)
	}
}

func TestTheOldestMembersOwnKeysIfTheirNumberIsLimited(t *testing.T) {
	records := []Record{{ID: "c", Since: 5}, {ID: "a", Since: 9}, {ID: "b", Since: 5}, {ID: "leader", Everything: true}}
	if got := oldest(records, 2); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("oldest two: %v", got)
	}
	if got := oldest(records, 0); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("all: %v", got)
	}
}

func TestALeaderOfTheOneShardFormKeepsAllKeysUntilItEnds(t *testing.T) {
	m := NewMember("a", Timing{6 * time.Second, 4 * time.Second}, 0)
	own := Record{ID: "a", Version: "1"}
	leader := Record{ID: "leader", Version: "7", Everything: true}
	m.Written(Write{}, "1", 0)
	m.Read([]Record{own, leader}, 0)
	w := m.Next()
	m.Sent(w)
	m.Written(w, "2", time.Second)
	own.Version, own.Members = "2", w.Members
	m.Read([]Record{own, leader}, time.Second)
	if m.Owns("ml/llm") || len(m.Expired(time.Minute)) != 0 {
		t.Error("a leader that may live was ignored or removed")
	}
	for at := range 6 {
		m.Read([]Record{own, leader}, time.Duration(at+1)*time.Second)
	}
	if !m.Owns("ml/llm") {
		t.Error("a leader that ended still owns everything")
	}
}

func TestATermThatMetAnotherWritesNoMore(t *testing.T) {
	h := NewHoldings("a")
	mine := func(string) bool { return true }
	h.Update([]string{"ml/llm"}, mine)
	first, _ := h.Fence("ml/llm", "b.1")
	if again, may := h.Fence("ml/llm", "b.1"); !may || again != first {
		t.Errorf("a second try before the first is answered: %q, %v", again, may)
	}
	if _, may := h.Fence("ml/llm", first); !may {
		t.Error("its own term stops it")
	}
	if _, may := h.Fence("ml/llm", "c.1"); may || h.Holds("ml/llm") {
		t.Error("it writes after another member")
	}
	h.Begin("ml/llm", mine)
	if h.Holds("ml/llm") {
		t.Error("a lost term is renewed without a reading")
	}
	h.Update([]string{"ml/llm"}, mine)
	if second, may := h.Fence("ml/llm", "c.1"); !may || second == first {
		t.Errorf("after a reading: %q, %v, want a new term", second, may)
	}
}

func TestAPatchThatWasRejectedForACacheThatLagsCostsNoTerm(t *testing.T) {
	h := NewHoldings("a")
	h.Begin("ml/llm", func(string) bool { return true })
	term, _ := h.Fence("ml/llm", "b.1")
	h.Rejected("ml/llm", term, "b.1")
	if again, may := h.Fence("ml/llm", "b.2"); !may || again != term {
		t.Errorf("%q, %v, want the same term", again, may)
	}
}
