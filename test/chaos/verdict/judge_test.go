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
	if got := j.Counts(); got != (Counts{Launches: 1, Reductions: 2, Ends: 3, BusyEnds: 2, MachineEnds: 1, Writes: 1,
		Rests: 2}) {
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
			phase(70, Storm), state(70, 1, 0, 3), state(71, 1, 0, 0), state(77, 1, 0, 0), spec(78, "heliostat", 2, "w1"),
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

// TestANameIsTakenBackBeforeTheStateShowsItsNode has a drained pod in which Ray starts again. Heliostat reads the head
// before the judge does. Without a node within a second, it was a launch.
func TestANameIsTakenBackBeforeTheStateShowsItsNode(t *testing.T) {
	for _, c := range []struct {
		seen  State
		count int
	}{
		{state(74.1, 1, 2, 0), 0}, {state(74.1, 1, 1, 0), 0}, {state(76, 1, 1, 0), 1}, {state(76, 1, 2, 0), 0},
	} {
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", 3), state(70, 1, 2, 0), state(72, 1, 1, 0),
			spec(72.1, "heliostat", 2, "w2"), state(73, 1, 1, 0), state(79, 1, 1, 0), spec(80, "heliostat", 3))
		seen := c.seen
		seen.At = seen.At.Add(6 * time.Second)
		if got := judged(append(facts, seen)...).Violations(); len(got) != c.count {
			t.Errorf("with workers %v %v after it: %v, want %d", seen.Workers, seen.At.Sub(at(80)), got, c.count)
		}
	}
}

// TestTheOperatorDeletesAPodWhoseNameIsTakenBack, because it had read the name. It makes another one, by the replicas of
// the patch that takes the name back. What it deletes later, it had not read.
func TestTheOperatorDeletesAPodWhoseNameIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		last  []Fact
		count int
	}{
		{[]Fact{End{At: at(80.4), Cluster: "a", Group: "cpu", Pod: "w2", Cause: Deleted}, state(81.5, 1, 1, 0)}, 0},
		{[]Fact{state(81.5, 1, 1, 0), End{At: at(82.5), Cluster: "a", Group: "cpu", Pod: "w2", Cause: Deleted}}, 1},
	} {
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", 3), state(70, 1, 2, 0), state(72, 1, 1, 0),
			spec(72.1, "heliostat", 2, "w2"), state(73, 1, 1, 0), state(79, 1, 1, 0), spec(80, "heliostat", 3))
		if got := judged(append(facts, c.last...)...).Violations(); len(got) != c.count {
			t.Errorf("%v: %v, want %d", c.last, got, c.count)
		}
	}
}

// TestWhatAMinimumAsksForIsNoLaunch: the operator makes the pods of a minimum that a person raises, whatever replicas
// say. A run had it.
func TestWhatAMinimumAsksForIsNoLaunch(t *testing.T) {
	minimum := func(s *Spec) { s.Groups[0].Min = 5 }
	facts := append(good(), phase(70, Storm), state(70, 1, 0, 0), with(spec(71, "person", 1), minimum), with(spec(71.1, "heliostat", 5), minimum))
	if got := judged(facts...).Violations(); len(got) != 0 {
		t.Error(got)
	}
}

// TestAnAnswerComesBesideAPodThatCanTakeNoWork has new work while a drained pod stays, which still counts as a replica. A
// run with a real Ray had it: the pods could not be listed, so the drained one could not be named.
func TestAnAnswerComesBesideAPodThatCanTakeNoWork(t *testing.T) {
	for spent, want := range map[int64]int{0: 1, 1: 0} {
		drained := with(state(71, 0, 0, 0), func(s *State) { s.Spent = map[string]int64{"cpu": spent} })
		facts := append(good(), phase(70, Storm), drained, Answer{At: at(85), Cluster: "a", Demand: map[string]int64{"cpu": 1}},
			spec(85.2, "heliostat", 2, "w1"))
		if got := judged(facts...).Violations(); len(got) != want {
			t.Errorf("with %d such pods: %v", spent, got)
		}
	}
}

// TestAnAnswerCountsAWorkerThatDrainsWithItsWorkOnce has a worker that is busy and drains, so it is in the answer and among
// the pods that can take no work.
func TestAnAnswerCountsAWorkerThatDrainsWithItsWorkOnce(t *testing.T) {
	for replicas, want := range map[int64]int{2: 0, 3: 1} {
		drains := with(state(71, 0, 0, 0), func(s *State) {
			s.Workers["w0"] = Worker{Group: "cpu", Busy: true, Draining: true}
			s.Spent = map[string]int64{"cpu": 1}
		})
		facts := append(good(), phase(70, Storm), drains, Answer{At: at(85), Cluster: "a", Demand: map[string]int64{"cpu": 2}},
			spec(85.2, "heliostat", replicas))
		if got := judged(facts...).Violations(); len(got) != want {
			t.Errorf("%d replicas: %v, want %d", replicas, got, want)
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

// TestANameThatStaysOnALivingPod has a drained pod that Heliostat names while no Ray node is in it. The operator stands
// still until the container has started again and Ray has placed work in it. In the first case, the facts are those of a
// run: 0.4 s later the pod was gone, and the API server took 1.5 s for each answer to Heliostat.
func TestANameThatStaysOnALivingPod(t *testing.T) {
	slow := func(from, to float64) []Fact {
		return []Fact{Hindered{At: at(from)}, Hindered{At: at(from), Ended: at(to)}}
	}
	for _, c := range []struct {
		name   string
		others []Fact
		alive  float64
		want   int
	}{
		{"too short for a patch, and the API server is slow", []Fact{Hindered{At: at(73.9)}}, 0.4, 0},
		{"too short for a patch", nil, 0.4, 0},
		{"long enough", nil, 1.5, 1},
		{"the API server is slow", []Fact{Hindered{At: at(73.9)}}, 5, 0},
		{"the API server is slow 1.5 s later", []Fact{Hindered{At: at(76)}}, 3, 1},
		{"the API server is slow 0.5 s later", []Fact{Hindered{At: at(75)}}, 3, 0},
		{"the API server was slow for 3 s until 2 s before", slow(69.5, 72.5), 3, 0},
		{"the API server was slow for 1 s until 3 s before", slow(70.5, 71.5), 3, 1},
		{"the head of another RayCluster hangs", []Fact{Hindered{At: at(70), Cluster: "b"}}, 3, 1},
	} {
		named := func(pod string) []Violation {
			facts := append(good(), phase(70, Storm), spec(70, "kubectl", 2), state(71, 2, 0, 0))
			facts = append(append(facts, c.others...), state(72, 1, 0, 0), spec(72.1, "heliostat", 1, pod), state(74.5, 6, 0, 0),
				End{At: at(74.5 + c.alive), Cluster: "a", Group: "cpu", Pod: pod, Cause: Deleted, Busy: true})
			return judged(facts...).Violations()
		}
		if got := named("w1"); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
		if got := named("w5"); len(got) != 1 {
			t.Errorf("%s: %v, want 1 for a pod that was about to join for the first time", c.name, got)
		}
	}
}

// TestAPodThatLivesAgainWhileItsNameIsOnItsWay has a drained pod in which Ray starts again while a patch that names it is
// on its way. In the last case, the facts are those of a run: the API server took 1.5 s for each answer to Heliostat.
func TestAPodThatLivesAgainWhileItsNameIsOnItsWay(t *testing.T) {
	for _, c := range []struct {
		name         string
		others       []Fact
		joined, ends float64
		want         int
	}{
		{"it has just joined", nil, 74.2, 75.8, 0},
		{"it has just joined, and keeps its name", nil, 74.2, 77, 1},
		{"it joined longer ago than the patch may take", nil, 73.4, 75.8, 2},
		{"the head of another RayCluster hangs", []Fact{Hindered{At: at(72), Cluster: "b"}}, 73.4, 75.8, 2},
		{"the API server is slow", []Fact{Hindered{At: at(72)}}, 73.4, 75.8, 0},
	} {
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", 2), state(71, 2, 0, 0), state(72, 1, 0, 0))
		facts = append(append(facts, c.others...), state(c.joined, 2, 0, 0), state(74.9, 2, 0, 0), spec(75, "heliostat", 1, "w1"),
			End{At: at(c.ends), Cluster: "a", Group: "cpu", Pod: "w1", Cause: Deleted, Busy: true})
		if got := judged(facts...).Violations(); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}

// TestANameThatIsTakenBack lets Heliostat take the name of a pod back whose Ray started again. The operator may have read
// it before. Later, the pod is like others.
func TestANameThatIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  float64
		person []Fact
		want   int
	}{
		{"the operator had read it", 0.5, nil, 0},
		{"nobody wants it gone", 4, nil, 1},
		{"the operator stood still and finds the name in its watch", 4,
			[]Fact{Standstill{At: at(73)}, Standstill{At: at(73), Ended: at(78)}}, 0},
		{"the operator stood still before", 4, []Fact{Standstill{At: at(71), Ended: at(74)}}, 1},
		{"a person lowered the group", 4, []Fact{spec(76, "kubectl", 1)}, 0},
	} {
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", 2), state(71, 2, 0, 0), state(72, 1, 0, 0),
			spec(72.1, "heliostat", 1, "w1"), state(74.5, 2, 0, 0), spec(74.7, "heliostat", 2))
		facts = append(append(facts, c.person...),
			End{At: at(74.7 + c.after), Cluster: "a", Group: "cpu", Pod: "w1", Cause: Deleted, Busy: true})
		if got := judged(facts...).Violations(); len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}

// TestAMaximumThatNoWatchHasShown has a person who lowers the maximum of a group and raises it again while the watch is
// cut. The operator saw it in between.
func TestAMaximumThatNoWatchHasShown(t *testing.T) {
	for name, c := range map[string]struct {
		limited []Fact
		want    int
	}{
		"it was lowered":      {[]Fact{Limited{At: at(71), Cluster: "a", Group: "cpu"}}, 0},
		"another group":       {[]Fact{Limited{At: at(71), Cluster: "a", Group: "gpu"}}, 1},
		"long ago":            {[]Fact{Limited{At: at(40), Cluster: "a", Group: "cpu"}}, 1},
		"nobody did anything": {nil, 1},
	} {
		facts := append(good(), phase(35, Storm))
		facts = append(append(facts, c.limited...), state(72, 2, 0, 0),
			End{At: at(74), Cluster: "a", Group: "cpu", Pod: "w0", Cause: Deleted, Busy: true})
		if got := judged(facts...).Violations(); len(got) != c.want {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

// TestNamesThatAreTakenBackAreNoLaunch has a worker that is idle, drained and named, and in which Ray starts again.
func TestNamesThatAreTakenBackAreNoLaunch(t *testing.T) {
	for replicas, want := range map[int64]int{2: 0, 3: 1} {
		facts := append(good(), phase(62, Storm), spec(63, "kubectl", 2), state(64, 0, 2, 0), state(75, 0, 1, 0),
			spec(75.1, "heliostat", 1, "w1"), state(76, 0, 2, 0), spec(76.2, "heliostat", replicas))
		if got := judged(facts...).Violations(); len(got) != want {
			t.Errorf("%d replicas: %v, want %d", replicas, got, want)
		}
	}
}

// TestANameOfAPodThatIsBeingDeleted has a pod that the operator deletes because a person lowered the maximum, and that
// Heliostat names then. It is not Heliostat that ends it.
func TestANameOfAPodThatIsBeingDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		ending bool
		person float64
		want   int
	}{
		"a person lowered the maximum":     {true, 71, 0},
		"nobody lowered anything for long": {true, 35, 1},
		"it was named before":              {false, 71, 2},
	} {
		ending := func(s *State) { s.Workers["w1"] = Worker{Group: "cpu", Busy: true, Ending: c.ending} }
		facts := append(good(), phase(62, Storm), spec(63, "kubectl", 2), state(64, 2, 0, 0))
		if c.person > 64 {
			facts = append(facts, with(spec(c.person, "person", 2), func(s *Spec) { s.Groups[0].Max = 1 }))
		}
		facts = append(facts, with(state(72, 2, 0, 0), ending), spec(72.2, "heliostat", 1, "w1"),
			End{At: at(72.4), Cluster: "a", Group: "cpu", Pod: "w1", Cause: Deleted, Busy: true})
		if got := judged(facts...).Violations(); len(got) != c.want {
			t.Errorf("%s: %v, want %d", name, got, c.want)
		}
	}
}

// TestALaunchBesideAPodWhoseMachineDisappeared has the facts of a run: the pod was removed 60 ms after its Ray node had
// ended, between two states, and Heliostat had read it for the last time in between.
func TestALaunchBesideAPodWhoseMachineDisappeared(t *testing.T) {
	for replicas, want := range map[int64]int{4: 0, 5: 1} {
		facts := append(good(), phase(70, Storm), spec(70, "kubectl", 3), state(71, 3, 0, 0),
			End{At: at(71), Cluster: "a", Group: "cpu", Pod: "w2", Cause: Machine, Busy: true}, state(71.1, 2, 0, 1),
			spec(71.2, "heliostat", replicas))
		if got := judged(facts...).Violations(); len(got) != want {
			t.Errorf("%d replicas: %v, want %d", replicas, got, want)
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
		j.See(Hindered{At: at(float64(i) / 10), Ended: at(float64(i) / 10)})
	}
	c := j.clusters["a"]
	if n := len(c.demands) + len(c.alive) + len(c.named) + len(c.joined); n > 200 {
		t.Errorf("a judge keeps %d facts of 5 s with 10 a second", n)
	}
	if n := len(j.hindrances); n > 601 {
		t.Errorf("a judge keeps %d hindrances of a minute with 10 a second", n)
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
