package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestNothingIsTakenAwayWhileTheGCSDoesNotAnswer(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 1, 4))
	w.cycle()
	w.ray.stateErr = errors.New("unavailable")
	w.want(9, gpu(1))
	w.kube.cluster.RequestResources = []raydemand.Request{{Bundle: gpu(1), Count: 4}}
	w.cycles(10, 20*time.Second)
	w.nothingWritten("nobody knows what Ray does")
	w.emitted(addon.ReasonGCSUnavailable, 1, "it begins once")
	d, _ := w.c.Decision(key)
	if d.RayErr == "" || d.Paused == "" || d.Age(w.now) < 3*time.Minute {
		t.Errorf("decision has error %q, pause %q and age %v", d.RayErr, d.Paused, d.Age(w.now))
	}
}

func TestAHeadThatDoesNotAnswerIsTriedLessAndLessOften(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 4))
	w.ray.stateErr = errors.New("unavailable")
	w.cycles(600, 100*time.Millisecond)
	if w.ray.reads > 15 || w.ray.reads < 8 {
		t.Errorf("%d readings within a minute, want a back-off up to 10 s", w.ray.reads)
	}
	if w.dials != w.ray.reads {
		t.Errorf("%d dials for %d failed readings, want a new line each time: token and certificates may have changed", w.dials, w.ray.reads)
	}
	w.ray.stateErr = nil
	w.after(11 * time.Second)
	if d, _ := w.c.Decision(key); d.RayErr != "" {
		t.Errorf("still %q after the head answers again", d.RayErr)
	}
}

func TestAStaleReadingTakesNothingAway(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.cycle()
	w.pass(2 * time.Minute)
	// The reading takes a moment, then the process is stopped for longer than data may be old.
	calls := 0
	w.c.config.Now = func() time.Time {
		if calls++; calls > 2 {
			return w.now.Add(11 * time.Second)
		}
		return w.now
	}
	d := w.cycle()
	w.nothingWritten("the reading is 11 s old")
	if d.Paused == "" {
		t.Error("the pause is not reported")
	}
}

func TestASuddenDropThatIsConfirmedTwiceIsBelieved(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 5, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	w.kube.cluster.Workers = w.kube.cluster.Workers[:2]
	w.cycle()
	w.nothingWritten("three of five pods vanished at once")
	w.emitted(addon.ReasonReductionsPaused, 1, "it begins once")
	before := w.kube.freshReads
	w.after(100 * time.Millisecond)
	w.nothingWritten("the same list again is not a second look")
	w.after(1100 * time.Millisecond)
	w.nothingWritten("one look is not two")
	w.after(1200 * time.Millisecond)
	if len(w.ray.drains) == 0 || w.kube.freshReads-before < 2 {
		t.Errorf("%d drains after %d fresh lists, want reductions after two", len(w.ray.drains), w.kube.freshReads-before)
	}
}

func TestOnlyPodsOfThisClusterAndGroupAreEverNamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	removed := nodepool.Worker{Pod: "llm-old-1", Group: "removed", CreatedAt: w.now}
	w.kube.cluster.Workers = append(w.kube.cluster.Workers, removed)
	dead := *w.node(w.pod(0))
	dead.ID, dead.Instance, dead.Group, dead.Status = nodeID("llm-old-1"), "llm-old-1", "removed", raydemand.Dead
	foreign := dead
	foreign.ID, foreign.Instance, foreign.Status, foreign.Idle = nodeID("someone-else"), "someone-else", raydemand.Idle, time.Hour
	w.ray.nodes = append(w.ray.nodes, dead, foreign)
	w.cycles(20, 10*time.Second)
	for _, change := range w.kube.changes {
		for _, target := range change.Targets {
			if slices.Contains(target.WorkersToDelete, "llm-old-1") || slices.Contains(target.WorkersToDelete, "someone-else") {
				t.Errorf("named a pod that is not the group's: %+v", target)
			}
		}
	}
	if slices.Contains(w.ray.drained(), "someone-else") {
		t.Error("drained a node whose pod is not known")
	}
}

func TestTheSecondLookAddsNoReductions(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 1, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	fresh := clone(w.kube.cluster)
	fresh.Groups[0].Min = 0
	w.kube.fresh = &fresh
	w.cycle()
	w.drains(1, "only the worker that both looks let go")
}

func TestNothingIsDrainedInTheCycleOfAConflict(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9), nodepool.WorkerGroup{Name: "cpu", Max: 5,
		Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(64)}})
	w.cycle()
	w.pass(2 * time.Minute)
	w.want(1, raydemand.Bundle{raydemand.CPU: raydemand.Whole(64)})
	w.kube.nextErr = nodepool.ErrConflict
	w.cycle()
	w.nothingWritten("somebody else edits the RayCluster right now")
}

func TestAnOutageOfTheGCSLetsNoClockRunOut(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	w.cycle()
	w.operate()
	w.after(time.Second)
	w.kube.changes = nil
	w.ray.stateErr = errors.New("unavailable")
	w.cycles(20, 15*time.Second)
	w.ray.stateErr = nil
	w.after(15 * time.Second)
	w.nothingWritten("nobody could have been seen to join")
	w.emitted(addon.ReasonGroupFailing, 0, "the group open")
	w.want(0, nil)
	w.after(time.Second)
	w.ray.stateErr = errors.New("unavailable")
	w.cycles(20, 15*time.Second)
	w.ray.stateErr = nil
	w.after(15 * time.Second)
	w.nothingWritten("that nothing was asked for during the outage was not seen")
}

func TestNoNodeIsDrainedWhilePatchesFail(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 6, 0, 6))
	for i := 1; i < 6; i++ {
		w.busy(w.pod(i))
	}
	w.kube.applyErr = errors.New("403 forbidden")
	w.after(61 * time.Second) // the first is drained, and its pod cannot be named
	w.after(time.Second)
	for i := 1; i < 6; i++ {
		w.idles(w.pod(i))
	}
	before := w.kube.freshReads
	w.cycles(1800, 100*time.Millisecond)
	if got := len(w.ray.drains); got != 1 {
		t.Errorf("%d drains, want only the one before the first patch failed", got)
	}
	if lists := w.kube.freshReads - before; lists > 15 {
		t.Errorf("%d fresh lists in three minutes, want one for each try of a patch", lists)
	}
	w.kube.applyErr = nil
	w.after(31 * time.Second)
	w.operate()
	w.after(time.Second)
	if got := len(w.ray.drains); got != 6 {
		t.Errorf("%d drains once patches succeed, want all", got)
	}
}

func TestASecondLookThatFailsIsLoggedOnceAndRepeatedWithPauses(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 6))
	w.kube.freshErr = errors.New("the server is overloaded")
	w.pass(61 * time.Second)
	d := w.cycles(600, 100*time.Millisecond)
	w.nothingWritten("no fresh list could be read")
	if w.kube.freshReads > 8 {
		t.Errorf("%d fresh lists in a minute, want pauses that grow to 30 s", w.kube.freshReads)
	}
	if w.kube.emitted(addon.ReasonReductionsPaused) != 1 || d.Paused != "reading the RayCluster again before a reduction failed: the server is overloaded" {
		t.Errorf("events %v and pause %q, want the failure reported once", w.kube.events, d.Paused)
	}
	w.kube.freshErr = nil
	w.after(31 * time.Second)
	w.drains(1, "the idle worker once lists can be read")
}

// TestWhatStopsReductions has four workers that have been idle for longer than their timeout, and something because of
// which none may go. When that is over, they are drained.
func TestWhatStopsReductions(t *testing.T) {
	type change = func(*world)
	cluster := func(set func(*nodepool.Cluster)) change { return func(w *world) { set(&w.kube.cluster) } }
	group := func(set func(*nodepool.WorkerGroup)) change { return func(w *world) { set(w.group("gpu")) } }
	fresh := func(set func(*nodepool.Cluster)) change { return func(w *world) { w.onlyFresh(set) } }
	notFresh := func(w *world) { w.kube.fresh = nil }
	workers := func(set func(*world, string)) change {
		return func(w *world) {
			for _, p := range w.kube.cluster.Workers {
				set(w, p.Pod)
			}
		}
	}
	// meanwhile changes something while the RayCluster is read again, before anything is taken away.
	meanwhile := func(do change) change {
		return func(w *world) {
			w.kube.onFresh = func() { do(w) }
		}
	}
	for name, c := range map[string]struct {
		begin, end change // without end, it is over by itself
		paused     string
	}{
		"the workers have work": {begin: workers(func(w *world, pod string) { w.busy(pod); w.node(pod).Idle = time.Hour }),
			end: workers((*world).idles)},
		"Ray does not answer": {begin: func(w *world) { w.ray.stateErr = errors.New("unavailable") },
			end: func(w *world) { w.ray.stateErr = nil }, paused: "Ray's state cannot be read"},
		"no head is listed":     {begin: func(w *world) { w.ray.nodes = w.ray.nodes[1:] }, paused: "own head"},
		"most nodes are gone":   {begin: func(w *world) { w.ray.nodes = w.ray.nodes[:2] }, paused: "3 of"},
		"most pods are gone":    {begin: cluster(func(c *nodepool.Cluster) { c.Workers = c.Workers[:1] }), paused: "3 of"},
		"the process is new":    {begin: func(w *world) { w.restart(Config{}) }, paused: "session is new"},
		"the GCS was restarted": {begin: func(w *world) { w.ray.version = 0 }, paused: "session is new"},
		"the head was restarted": {begin: func(w *world) { w.ray.session = "session-2" },
			paused: "session is new"},
		"requests are unknown": {begin: cluster(func(c *nodepool.Cluster) { c.OwnedUnknown = "forbidden" }),
			end: cluster(func(c *nodepool.Cluster) { c.OwnedUnknown = "" }), paused: "ResourceRequests are unknown: forbidden"},
		"another process leads": {begin: func(w *world) { w.kube.deposed = true }, end: func(w *world) { w.kube.deposed = false }},
		"it is frozen": {begin: cluster(func(c *nodepool.Cluster) { c.Freeze = true }),
			end: cluster(func(c *nodepool.Cluster) { c.Freeze = false })},
		"the operator refuses the spec": {begin: cluster(func(c *nodepool.Cluster) { c.Refused = true }),
			end: cluster(func(c *nodepool.Cluster) { c.Refused = false })},
		"the group is broken": {begin: group(func(g *nodepool.WorkerGroup) { g.Broken = true }),
			end: group(func(g *nodepool.WorkerGroup) { g.Broken = false })},
		"the group is suspended": {begin: group(func(g *nodepool.WorkerGroup) { g.Suspended = true }),
			end: group(func(g *nodepool.WorkerGroup) { g.Suspended = false })},
		"the operator does not delete what is named": {
			begin: func(w *world) { w.group("gpu").WorkersToDelete, w.group("gpu").Replicas = []string{w.pod(0)}, 3 },
			end:   (*world).operate, paused: "which workersToDelete names"},
		"the operator has not seen the last patch": {begin: func(w *world) {
			w.group("gpu").Replicas, w.kube.cluster.Generation = 5, 2
			w.c.record(key).memory.Patches.generation = 2
		}, end: (*world).operate, paused: "has not observed the last patch"},
		"the API server has a higher minimum": {begin: fresh(func(c *nodepool.Cluster) { c.Groups[0].Min = 4 }), end: notFresh},
		"the API server has a freeze":         {begin: fresh(func(c *nodepool.Cluster) { c.Freeze = true }), end: notFresh},
		"the API server has another object": {begin: fresh(func(c *nodepool.Cluster) { c.UID = "uid-2" }), end: notFresh,
			paused: "deleted and created again"},
		"Ray does not answer again": {begin: meanwhile(func(w *world) { w.ray.stateErr = errors.New("unavailable") }),
			end: func(w *world) { w.ray.stateErr = nil }, paused: "reading Ray again"},
		"the GCS loses its head meanwhile": {begin: meanwhile(func(w *world) { w.ray.nodes = w.ray.nodes[1:] }),
			paused: "reading Ray again"},
		"another session begins meanwhile": {begin: meanwhile(func(w *world) { w.ray.session = "session-2" }),
			paused: "reading Ray again"},
		"the nodes are born anew meanwhile": {
			begin: meanwhile(workers(func(w *world, pod string) { w.node(pod).ID = nodeID("anew " + pod) }))},
		"the nodes are known to be dead": {
			begin: meanwhile(workers(func(w *world, pod string) { w.node(pod).Status = raydemand.Dead }))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 4, 0, 9))
			w.after(50 * time.Second)
			nodes, pods := slices.Clone(w.ray.nodes), slices.Clone(w.kube.cluster.Workers)
			w.pass(11 * time.Second)
			c.begin(w)
			d := w.cycle()
			w.nothingWritten(name)
			if !strings.Contains(d.Paused, c.paused) {
				t.Errorf("paused: %q, want in it %q", d.Paused, c.paused)
			}
			w.kube.onFresh = nil
			if c.end == nil {
				w.ray.nodes, w.kube.cluster.Workers = nodes, pods
				c.end = func(*world) {}
			} else {
				w.cycles(3, time.Minute)
				w.nothingWritten(name + ", minutes later")
			}
			c.end(w)
			for s := 0; len(w.ray.drains) == 0 && s < 75; s++ {
				w.after(time.Second)
			}
			if len(w.ray.drains) == 0 {
				t.Error("no worker is drained when it is over")
			}
		})
	}
}

// TestTheDropGuardOutlivesTheRaySession: a GCS that starts again without its nodes is what it must notice.
func TestTheDropGuardOutlivesTheRaySession(t *testing.T) {
	m, v := newMemory(), viewOf(3)
	m.Remember(&v, settings())
	m.session = newSession()
	v = later(v, time.Second)
	v.State.Nodes = v.State.Nodes[:1]
	joined(&v)
	m.Remember(&v, settings())
	if !m.guard.Doubts() || !m.WantsFreshList(v.Now.Add(time.Minute)) {
		t.Error("three nodes are gone at once, and nothing doubts it")
	}
	v = later(v, time.Minute)
	for range 2 {
		m.RememberFresh(&v, settings(), true)
		v = later(v, time.Minute)
	}
	if m.RememberFresh(&v, settings(), false); m.guard.Doubts() {
		t.Error("two fresh lists have confirmed the loss, and it is doubted")
	}
}

func TestWhatWeTookAwayOurselvesIsNoSuddenDropHoweverLateRayNoticesIt(t *testing.T) {
	w := busyPair(t, Config{DrainDeadline: 25 * time.Second})
	w.limit("pair", 0)
	w.goesAfter(25*time.Second, 2, "the deadline runs")
	w.kube.cluster.Workers = nil // the operator has deleted both pods, and Ray has not noticed
	w.after(time.Second)
	if names := w.group("pair").WorkersToDelete; len(names) > 0 {
		t.Fatalf("workersToDelete = %v, want the names of pods that are gone cleared", names)
	}
	w.after(time.Second)
	w.ray.nodes = w.ray.nodes[:1]
	if d := w.after(time.Second); d.Paused != "" || w.kube.emitted(addon.ReasonReductionsPaused) > 0 {
		t.Errorf("paused: %q, events %v", d.Paused, w.kube.events)
	}
}

func TestNodesThatVanishUnderPodsThatStayAreASuddenDropAlthoughTheyWereNamedOnce(t *testing.T) {
	w := busyPair(t, Config{})
	group := w.group("pair")
	group.WorkersToDelete = []string{w.pod(0), w.pod(1)} // by somebody, who takes it back
	w.after(time.Second)
	w.group("pair").WorkersToDelete = nil
	w.after(time.Second)
	w.ray.nodes = slices.DeleteFunc(w.ray.nodes, func(n raydemand.Node) bool { return !n.Head })
	if d := w.after(time.Second); d.Paused == "" {
		t.Error("nothing pauses although two of three Ray nodes vanished under pods that nobody takes away")
	}
}

func TestWithoutAnAnswerFromRayNothingUnknownIsReported(t *testing.T) {
	unknown := []planner.Reason{{Code: planner.CodeClosed, Message: "closed: Ray does not answer, so its demand is unknown, and nothing is launched"}}
	for name, restarted := range map[string]bool{"the last account counts": false, "after a restart a ready pod has joined": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
			w.busy(w.pod(0))
			w.after(time.Second)
			w.ray.stateErr = errors.New("unavailable")
			if restarted {
				w.restart(Config{})
			}
			for range 120 {
				d := w.after(time.Second)
				if diff := cmp.Diff(unknown, d.Plan.Groups[0].Reasons); diff != "" {
					t.Fatalf("reasons (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]string{w.pod(0): "RUNNING", w.pod(1): "RUNNING"}, states(d.Snapshot)); diff != "" {
					t.Fatalf("nodes (-want +got):\n%s", diff)
				}
			}
			w.nothingWritten("nothing is known")
		})
	}
}
