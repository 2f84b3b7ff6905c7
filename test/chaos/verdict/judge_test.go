package verdict

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at is a moment of a history.
func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

var bounds = Bounds{Manager: "heliostat", Shadow: []string{"shadow"}, MaxInFlight: 3, Lag: 5 * time.Second,
	Memory: 100 << 20, Slack: 10 << 20}

// spec is a state of RayCluster "a" whose only group has a minimum of 1 and a maximum of 8.
func spec(seconds float64, writer string, replicas int64, names ...string) Spec {
	return Spec{At: at(seconds), Cluster: "a", Writer: writer,
		Groups: []Group{{Name: "cpu", Replicas: replicas, Min: 1, Max: 8, Delete: names}}}
}

// state is a state of "a" with so many busy and idle workers, named w0 and so on, and work that waits.
func state(seconds float64, busy, idle int, waiting int64) State {
	workers := map[string]Worker{}
	for i := range busy + idle {
		workers[fmt.Sprint("w", i)] = Worker{Group: "cpu", Busy: i < busy}
	}
	return State{At: at(seconds), Cluster: "a", Workers: workers, Waiting: map[string]int64{"cpu": waiting}}
}

func phase(seconds float64, name PhaseName) Phase { return Phase{At: at(seconds), Name: name} }

// with returns a changed copy.
func with[F any](fact F, change func(*F)) F {
	change(&fact)
	return fact
}

// good is a history of which every part is as it should be: work comes, is served, and ends.
func good() []Fact {
	shadow := func(f *Spec) { f.Cluster = "shadow" }
	return []Fact{
		phase(0, Storm),
		spec(0, "kubectl", 1), state(0, 1, 0, 0), with(spec(0, "kubectl", 5), shadow),
		state(1, 1, 0, 2), Answer{At: at(1), Cluster: "a", Demand: map[string]int64{"cpu": 3}},
		spec(2, "heliostat", 3), Write{At: at(2), Verb: "PATCH", Resource: "rayclusters", Name: "a", Answer: "200"},
		state(4, 3, 0, 0), state(9, 1, 2, 0),
		with(state(10, 1, 2, 0), func(s *State) { s.Workers["w2"] = Worker{Group: "cpu", Draining: true} }),
		state(11, 1, 1, 0), spec(12, "heliostat", 2, "w2"), End{At: at(13), Cluster: "a", Group: "cpu", Pod: "w2", Cause: Deleted},
		End{At: at(14), Cluster: "a", Group: "cpu", Pod: "w1", Cause: Machine, Busy: true},
		with(spec(15, "kubectl", 2), func(s *Spec) { s.Groups[0].Max = 1 }),
		End{At: at(16), Cluster: "a", Group: "cpu", Pod: "w5", Cause: Deleted, Busy: true}, // by the operator
		spec(17, "kubectl", 2), spec(18, "heliostat", 1, "w1"), Usage{At: at(18), Bytes: 60 << 20},
		phase(20, Calm), state(20, 1, 0, 0), phase(30, Rest), Usage{At: at(31), Bytes: 50 << 20}, state(31, 1, 0, 0),
		phase(40, Storm), phase(50, Calm), phase(60, Rest), Usage{At: at(61), Bytes: 80 << 20}, state(61, 1, 0, 0),
	}
}

func TestAGoodHistoryHasNoViolation(t *testing.T) {
	j := judged(good()...)
	for _, v := range j.Violations() {
		t.Error(v)
	}
	if got := j.Counts(); got != (Counts{Launches: 1, Reductions: 2, Ends: 3, BusyEnds: 2, Writes: 1, Rests: 2}) {
		t.Errorf("counts %+v", got)
	}
}

// TestEachRuleCanBeBroken has at least one broken history for every rule: the good one, with one fact more.
func TestEachRuleCanBeBroken(t *testing.T) {
	broken := map[Rule][]string{}
	for _, c := range []struct {
		name  string
		rule  Rule
		facts []Fact
	}{
		{"a named worker ends busy", BusyRemoved, []Fact{
			phase(70, Storm), spec(70, "kubectl", 3), spec(71, "heliostat", 2, "w2"),
			End{At: at(72), Cluster: "a", Group: "cpu", Pod: "w2", Cause: Deleted, Busy: true},
		}},
		{"a worker that nobody named ends busy", BusyRemoved, []Fact{
			phase(70, Storm), End{At: at(72), Cluster: "a", Group: "cpu", Pod: "w2", Cause: Deleted, Busy: true},
		}},
		{"a worker is named that is busy", BusyRemoved, []Fact{
			phase(70, Storm), spec(70, "kubectl", 3), state(70, 3, 0, 0), state(73, 3, 0, 0), spec(73.1, "heliostat", 2, "w1"),
		}},
		{"above the maximum", OutOfBounds, []Fact{
			phase(70, Storm), spec(70, "kubectl", 7), state(70, 7, 0, 20), spec(71, "heliostat", 9),
		}},
		{"below the minimum", OutOfBounds, []Fact{phase(70, Storm), spec(71, "heliostat", 0)}},
		{"all at once", InFlight, []Fact{phase(70, Storm), state(70, 1, 0, 7), spec(71, "heliostat", 5)}},
		{"for the same work again", LaunchedTwice, []Fact{
			phase(70, Storm), state(70, 1, 0, 1), spec(71, "heliostat", 2), state(71.5, 1, 0, 1), spec(72, "heliostat", 3),
		}},
		{"for work of long ago", LaunchedTwice, []Fact{
			phase(70, Storm), state(70, 1, 0, 3), state(71, 1, 0, 0), state(77, 1, 0, 0), spec(78, "heliostat", 2),
		}},
		{"work waits", Unserved, []Fact{state(62, 1, 0, 1)}},
		{"an idle worker stays", Superfluous, []Fact{state(62, 1, 1, 0)}},
		{"replicas stay", Superfluous, []Fact{phase(70, Storm), spec(71, "kubectl", 3), phase(80, Rest)}},
		{"a patch at rest", NoFixedPoint, []Fact{Write{At: at(62), Verb: "PATCH", Resource: "pods", Name: "w0", Answer: "200"}}},
		{"too much memory", Memory, []Fact{phase(70, Storm), Usage{At: at(71), Bytes: 101 << 20}}},
		{"memory that grows", Memory, []Fact{Usage{At: at(71), Bytes: 86 << 20}}},
		{"a RayCluster in shadow", Untouchable, []Fact{
			with(spec(62, "heliostat", 4), func(s *Spec) { s.Cluster = "shadow" }),
		}},
		{"a panic", Ended, []Fact{Crash{At: at(71), Log: "panic: nil"}}},
	} {
		j := judged(append(good(), c.facts...)...)
		var rules []Rule
		for _, v := range j.Violations() {
			rules = append(rules, v.Rule)
		}
		if !slices.Contains(rules, c.rule) {
			t.Errorf("%s: broke %q, want %q among them", c.name, rules, c.rule)
		}
		for _, other := range rules {
			if other != c.rule {
				t.Errorf("%s: broke also %q", c.name, other)
			}
		}
		broken[c.rule] = append(broken[c.rule], c.name)
	}
	for _, rule := range Rules {
		if len(broken[rule]) == 0 {
			t.Errorf("no history breaks the rule %q", rule)
		}
	}
}

func TestAViolationNamesWhatItIsAbout(t *testing.T) {
	j := judged(append(good(), phase(70, Storm), spec(71, "heliostat", 0))...)
	const want = "12:01:11.000 replicas are outside of the limits of their group of a: group cpu: 1 → 0 replicas, the minimum is 1"
	if got := j.Violations(); len(got) != 1 || got[0].String() != want {
		t.Errorf("violations %v, want %q", got, want)
	}
}

// TestAnswersJustifyLaunches says that a launch for work that only a lying head has is no fault of Heliostat.
func TestAnswersJustifyLaunches(t *testing.T) {
	lie := Answer{At: at(70), Cluster: "a", Demand: map[string]int64{"cpu": 3}}
	for _, facts := range [][]Fact{{lie}, nil} {
		j := judged(append(append(append(good(), phase(70, Storm)), facts...), spec(71, "heliostat", 3))...)
		if got, want := len(j.Violations()) == 0, facts != nil; got != want {
			t.Errorf("with %d answers: %v", len(facts), j.Violations())
		}
	}
}

// TestWorkThatDoesNotFitMayWait has a placement group of two workers that waits beside seven and six busy ones of a
// maximum of eight.
func TestWorkThatDoesNotFitMayWait(t *testing.T) {
	pair := func(s *State) { s.Smallest = map[string]int64{"cpu": 2} }
	facts := append(good(), phase(70, Storm), spec(71, "kubectl", 7), with(state(72, 7, 0, 2), pair), phase(80, Rest))
	if got := judged(facts...).Violations(); len(got) != 0 {
		t.Error(got)
	}
	facts = append(good(), phase(70, Storm), spec(71, "kubectl", 6), with(state(72, 6, 0, 2), pair), phase(80, Rest))
	if got := judged(facts...).Violations(); len(got) != 1 || got[0].Rule != Unserved {
		t.Error(got)
	}
}

// TestAPodHasJoinedWithTheAnswerThatSaysSo has a launch that is decided before the next state is read.
func TestAPodHasJoinedWithTheAnswerThatSaysSo(t *testing.T) {
	for joined, want := range map[int64]int{1: 1, 2: 0} {
		answer := Answer{At: at(71.4), Cluster: "a", Demand: map[string]int64{"cpu": 5}, Alive: map[string]int64{"cpu": joined}}
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", 4), state(71, 1, 0, 4), answer, spec(71.5, "heliostat", 5))
		if got := judged(facts...).Violations(); len(got) != want {
			t.Errorf("%d joined: %v, want %d", joined, got, want)
		}
	}
}

// TestOlderStorageIsNoChangeOfHeliostat lets the storage go back to more replicas, and to the name of a pod that lives
// again. What Heliostat changes after that counts again.
func TestOlderStorageIsNoChangeOfHeliostat(t *testing.T) {
	again := End{At: at(75), Cluster: "a", Group: "cpu", Pod: "w1", Cause: Deleted, Busy: true}
	back := append(good(), phase(70, Storm), Restored{At: at(71)}, spec(72, "heliostat", 6, "w1"), again)
	if got := judged(back...).Violations(); len(got) != 0 {
		t.Error(got)
	}
	if got := judged(append(back, spec(76, "heliostat", 9))...).Violations(); len(got) != 3 {
		t.Errorf("of a later change: %v, want that it is out of bounds, too much at once and for no work", got)
	}
	again.At = at(120)
	if got := judged(append(back, again)...).Violations(); len(got) != 1 || got[0].Rule != BusyRemoved {
		t.Errorf("long after: %v", got)
	}
}

// TestAMinimumThatEndsTakesItsPods lets somebody raise a minimum above the replicas, and take it back. Meanwhile Heliostat
// does not write, for example because the head does not answer. The operator then deletes pods of its own choice. A
// minimum below the replicas justifies nothing, nor does one of long ago.
func TestAMinimumThatEndsTakesItsPods(t *testing.T) {
	minimum := func(n int64) func(*Spec) { return func(s *Spec) { s.Groups[0].Min = n } }
	for _, c := range []struct {
		name     string
		replicas int64
		end      float64
		writer   string
		want     int
	}{
		{"above the replicas", 2, 75, "kubectl", 0},
		{"seen together with a patch of Heliostat", 2, 75, "heliostat", 0},
		{"below the replicas", 3, 75, "kubectl", 1},
		{"long ago", 2, 120, "kubectl", 1},
	} {
		end := End{At: at(c.end), Cluster: "a", Group: "cpu", Pod: "w3", Cause: Deleted, Busy: true}
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", c.replicas),
			with(spec(71, "kubectl", c.replicas), minimum(3)), with(spec(74, c.writer, c.replicas), minimum(1)), end)
		if got := judged(facts...).Violations(); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}

// TestAJudgeForgets keeps the memory of hours bounded.
func TestAJudgeForgets(t *testing.T) {
	j := New(bounds)
	for i := range 100_000 {
		j.See(state(float64(i)/10, 1, 1, 0))
		pod := fmt.Sprint("w", i)
		j.See(spec(float64(i)/10, "heliostat", 1, pod))
		j.See(End{At: at(float64(i) / 10), Cluster: "a", Group: "cpu", Pod: pod, Cause: Deleted})
	}
	c := j.clusters["a"]
	if n := len(c.demands) + len(c.alive) + len(c.named); n > 200 {
		t.Errorf("a judge keeps %d facts of 5 s with 10 a second", n)
	}
	if len(j.violations) > 0 {
		t.Error(strings.TrimSpace(j.violations[0].String()))
	}
}

func judged(facts ...Fact) *Judge {
	j := New(bounds)
	for _, fact := range facts {
		j.See(fact)
	}
	return j
}
