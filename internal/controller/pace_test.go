package controller

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// amongWaiting returns a RayCluster of a fleet in which 499 others wait.
func amongWaiting(t *testing.T) *world {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 2))
	for i := range 499 {
		w.c.setMotion(w.c.record(nodepool.ClusterKey{Namespace: "other", Name: fmt.Sprint(i)}), waiting)
	}
	return w
}

func TestAPatchThatFailsIsTriedOncePerSecondInALargeFleet(t *testing.T) {
	w := amongWaiting(t)
	w.busy(w.pod(0))
	w.kube.applyErr = errors.New("failed calling webhook")
	w.want(1, gpu(1))
	w.after(time.Second)
	w.quietly(time.Minute)
	if cycles := w.quietly(time.Minute); cycles < 50 {
		t.Errorf("%d cycles in a minute while a patch fails, want one per second", cycles)
	}
}

func TestRayClustersWithDemandThatNobodyCanServeShareTheCycles(t *testing.T) {
	w := amongWaiting(t)
	w.want(1, gpu(64))
	w.after(time.Second)
	w.quietly(time.Minute)
	if cycles := w.quietly(time.Minute); cycles < 5 || cycles > 7 {
		t.Errorf("%d cycles in a minute, want one per 10 s, because 500 share 50 per second", cycles)
	}
	w.busy(w.pod(0))
	w.goes(w.pod(0), disrupted())
	w.after(time.Second)
	w.quietly(time.Minute)
	if cycles := w.quietly(time.Minute); cycles < 50 {
		t.Errorf("%d cycles in a minute while a worker's machine goes, want one per second", cycles)
	}
}

func TestConflictsInARowAreLookedAtWithGrowingPauses(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	conflict := func() time.Duration {
		w.kube.nextErr = nodepool.ErrConflict
		return w.after(time.Second).Next
	}
	var pauses []time.Duration
	for range 9 {
		pauses = append(pauses, conflict()/time.Millisecond)
	}
	if diff := cmp.Diff([]time.Duration{10, 20, 40, 80, 160, 320, 640, 1000, 1000}, pauses); diff != "" {
		t.Errorf("pauses in ms (-want +got):\n%s", diff)
	}
	w.after(time.Second)
	w.want(2, gpu(1))
	if next := conflict(); next != pauseAfterConflicts(1) {
		t.Errorf("the first conflict after a write: next in %v, want %v", next, pauseAfterConflicts(1))
	}
	w.want(0, nil)
	w.after(time.Second)
	w.want(2, gpu(1))
	if next := conflict(); next != pauseAfterConflicts(1) {
		t.Errorf("the first conflict after nothing was wanted: next in %v, want %v", next, pauseAfterConflicts(1))
	}
}

func TestAClusterWithoutAHeadOrSwitchedOffIsHardlyRead(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 2))
	w.kube.cluster.Head.IP = ""
	if next := w.c.Cycle(context.Background(), key); next != 2*time.Second {
		t.Errorf("without a head: next in %v, want %v", next, 2*time.Second)
	}
	w.kube.cluster.Mode = nodepool.Off
	if next := w.c.Cycle(context.Background(), key); next != 30*time.Second || w.ray.reads != 0 {
		t.Errorf("switched off: next in %v after %d readings, want %v and none", next, w.ray.reads, 30*time.Second)
	}
}

func TestClustersShareHalfOfTheReadings(t *testing.T) {
	s := Config{FastPoll: 100 * time.Millisecond, RestPoll: 200 * time.Millisecond, ReadsPerSecond: 4000, CyclesPerSecond: 400,
		Jitter: func() float64 { return 0.5 }}
	for _, c := range []struct {
		clusters                                  int
		moving, following, stands, waits, resting time.Duration // milliseconds
	}{
		{1, 100, 100, 50, 1000, 200},
		{20, 100, 100, 400, 1000, 200},
		{100, 500, 200, 1000, 2000, 400},
		{1000, 5000, 2000, 2500, 20000, 600},
		{5000, 25000, 10000, 12500, 30000, 2500},
	} {
		n := counts{active: c.clusters, waiting: c.clusters, still: c.clusters}
		for _, row := range []struct {
			what      string
			got, want time.Duration
		}{
			{"between cycles of an active one", s.turn(active, n), c.moving},
			{"between readings of an active one", s.interval(active, n), c.following},
			{"for which a decision about an active one stands", s.stands(active, n), c.stands},
			{"for which a decision about one that waits stands", s.stands(waiting, n), c.waits},
			{"between readings of one at rest", s.IdleInterval(c.clusters), c.resting},
		} {
			if row.got != row.want*time.Millisecond {
				t.Errorf("%d clusters: the time %s is %v, want %v", c.clusters, row.what, row.got, row.want*time.Millisecond)
			}
		}
	}
}

// printOf is equal for states that differ only in versions and idle times, as the fingerprints of package gcs are.
func printOf(state raydemand.State) uint64 {
	sum := fnv.New64a()
	for _, n := range state.Nodes {
		n.Idle = 0
		fmt.Fprint(sum, n)
	}
	fmt.Fprint(sum, state.Session, state.Demand)
	return sum.Sum64() | 1
}

// quietly does what a worker of the manager does for so long while Kubernetes reports nothing: a reading after each
// pause, and a cycle if the decision does not stand. It returns how many cycles there were.
func (w *world) quietly(long time.Duration) (cycles int) {
	w.t.Helper()
	for end := w.now.Add(long); w.now.Before(end); {
		next, stands := w.c.Stands(context.Background(), key)
		if !stands {
			cycles++
			next = w.c.Cycle(context.Background(), key)
		}
		w.pass(max(next, time.Millisecond))
	}
	return cycles
}

func TestADecisionStandsWhileReadingsRepeat(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
	decided := w.after(2 * time.Minute)
	reads := w.ray.reads
	w.pass(200 * time.Millisecond)
	next, stands := w.c.Stands(context.Background(), key)
	if !stands || next != 200*time.Millisecond || w.ray.reads != reads+1 {
		t.Fatalf("stands %v, next in %v after %d readings; want that it stands, 200ms and one", stands, next, w.ray.reads-reads)
	}
	if now, _ := w.c.Decision(key); now != decided || now.Age(w.now) != 0 {
		t.Errorf("the decision is %p with data %v old, want %p and 0s", now, now.Age(w.now), decided)
	}
	if cycles := w.quietly(10 * time.Second); cycles < 8 || cycles > 12 {
		t.Errorf("%d cycles in ten quiet seconds, want one per second", cycles)
	}
}

// TestWhatFailedIsTriedAgainInALargeFleet lets a write of num-gpus fail: it waits for its next try, so the RayCluster is
// not at rest.
func TestWhatFailedIsTriedAgainInALargeFleet(t *testing.T) {
	for name, test := range map[string]struct {
		fails       func(r *record, now time.Time)
		least, most time.Duration
	}{
		"nothing": {func(*record, time.Time) {}, 90 * time.Second, 110 * time.Second},
		"num-gpus": {func(r *record, now time.Time) {
			for range 12 {
				r.numGPUs.rest.FailWithin(now, time.Hour)
			}
		}, soon, openStands},
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
		for i := range 4999 {
			w.c.record(nodepool.ClusterKey{Namespace: "other", Name: fmt.Sprint(i)})
		}
		w.after(10 * time.Minute)
		r := w.c.record(key)
		test.fails(r, w.now)
		w.pass(w.c.Cycle(context.Background(), key))
		began := r.decision.Load().At
		if got := r.stands.until.Sub(began); got < test.least || got > test.most {
			t.Errorf("%s failed: the decision stands for %v, want %v to %v", name, got, test.least, test.most)
		}
	}
}

func TestEventsWaitForTheirPlaceBeyondTheBurst(t *testing.T) {
	w := newWorld(t, Config{CyclesPerSecond: 10}, gpuGroup("gpu", 2, 2, 4))
	w.pass(time.Hour)
	for range 10 {
		w.c.Cycle(context.Background(), key)
	}
	reads := w.ray.reads
	wait := w.c.Cycle(context.Background(), key)
	if wait != 100*time.Millisecond || w.ray.reads != reads {
		t.Errorf("the 11th event at once: %d readings, next in %v; want none before 100ms", w.ray.reads-reads, wait)
	}
	w.pass(wait)
	if w.c.Cycle(context.Background(), key); w.ray.reads == reads {
		t.Error("no cycle when its place has come")
	}
}

// settlingWorld returns a fleet of a thousand in which work has just ended, and no cycle may begin before its turn.
func settlingWorld(t *testing.T) *world {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
	for i := range 999 {
		w.c.record(nodepool.ClusterKey{Namespace: "other", Name: fmt.Sprint(i)})
	}
	w.works(w.pod(0))
	w.quietly(time.Second)
	w.idles(w.pod(0))
	w.quietly(time.Second)
	return w
}

func (w *world) noneEarly() {
	for w.c.cycles.AllowN(w.now, earlyCost) {
	}
}

// TestWorkThatEndedBetweenCyclesIsNotTakenForLaterWork has a reading show work, and another one that it has ended, and no
// cycle see either. Work that comes later is new.
func TestWorkThatEndedBetweenCyclesIsNotTakenForLaterWork(t *testing.T) {
	w := settlingWorld(t)
	w.c.Cycle(context.Background(), key)
	w.pass(50 * time.Millisecond)
	w.noneEarly()
	w.busy(w.pod(0))
	wait, stands := w.c.Stands(context.Background(), key)
	if !stands {
		t.Fatal("the decision falls before its turn")
	}
	w.idles(w.pod(0))
	w.pass(wait)
	w.quietly(2 * observe.PlacedShown)
	w.busy(w.pod(0))
	members := observe.Join(w.kube.cluster, w.ray.nodes)
	members[0].Worker.Going = disrupted()
	view := observe.View{Now: w.now, Cluster: w.kube.cluster, Members: members}
	view.State.Nodes = w.ray.nodes
	m := &w.c.record(key).memory
	m.Remember(&view, &w.c.config)
	if got := m.Departing(view, time.Minute); len(got) > 0 {
		t.Errorf("drains %v, on which work is just being placed", got)
	}
}

// Use that one reading shows between others does not last until the cycle that sees it again.
func TestUseThatAReadingHasInterruptedIsNew(t *testing.T) {
	w := settlingWorld(t)
	w.kube.cluster.RayVersion = "2.60.0"
	w.c.Cycle(context.Background(), key)
	w.noneEarly()
	r := w.c.record(key)
	r.stands.until, r.stands.earliest = w.now.Add(9*time.Second), w.now.Add(9*time.Second)
	for _, use := range []func(string){w.busy, w.idles} {
		w.pass(4 * time.Second)
		w.noneEarly()
		use(w.pod(0))
		if _, stands := w.c.Stands(context.Background(), key); !stands {
			t.Fatal("the decision falls before its turn")
		}
	}
	w.pass(2 * time.Second)
	w.busy(w.pod(0))
	r.memory.Glance(w.now, w.ray.nodes, false, "2.60.0")
	if used := r.memory.clock.UsedFor(w.now, w.node(w.pod(0)).ID); used > 0 {
		t.Errorf("it counts as busy for %v", used)
	}
}

func TestARayClusterThatIsGoneOrCannotBeReadDoesNotMove(t *testing.T) {
	for err, want := range map[error]counts{errors.New("unreadable"): {still: 1}, fmt.Errorf("getting: %w", nodepool.ErrGone): {}} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
		w.want(1, gpu(1))
		w.cycle()
		if got := w.c.counts(); got != (counts{active: 1}) {
			t.Fatalf("there are %+v, want one that moves", got)
		}
		w.kube.clusterErr = err
		w.pass(time.Second)
		w.c.Cycle(context.Background(), key)
		if got := w.c.counts(); got != want {
			t.Errorf("%v: there are %+v, want %+v", err, got, want)
		}
	}
}

func TestADecisionFallsWithAnyChange(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"demand":                 func(w *world) { w.want(1, gpu(1)) },
		"work":                   func(w *world) { w.busy(w.pod(0)) },
		"a dead node":            func(w *world) { w.node(w.pod(0)).Status = raydemand.Dead },
		"a new session":          func(w *world) { w.ray.session = "session-2" },
		"a restarted GCS":        func(w *world) { w.ray.version = 0 },
		"a head without answer":  func(w *world) { w.ray.stateErr = errors.New("connection refused") },
		"a reply without a sum":  func(w *world) { w.ray.unknown = true },
		"the end of its time":    func(w *world) { w.pass(2 * time.Second) },
		"an event of Kubernetes": func(w *world) { w.c.cycles = rate.NewLimiter(0.001, 1); w.cycle(); w.cycle() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
			w.after(2 * time.Minute)
			w.pass(200 * time.Millisecond)
			if _, stands := w.c.Stands(context.Background(), key); !stands {
				t.Fatal("the decision does not stand before the change")
			}
			change(w)
			w.pass(200 * time.Millisecond)
			if _, stands := w.c.Stands(context.Background(), key); stands {
				t.Error("the decision stands")
			}
		})
	}
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
	if _, stands := w.c.Stands(context.Background(), nodepool.ClusterKey{Name: "unknown"}); stands {
		t.Error("a RayCluster without a decision stands")
	}
}

func TestNewDemandIsServedWithTheReadingThatShowsIt(t *testing.T) {
	w := newWorld(t, Config{CyclesPerSecond: 0.001}, gpuGroup("gpu", 0, 0, 4))
	for w.c.Cycle(context.Background(), key) > time.Second { // the burst of events is over: no slot is left
		w.pass(time.Hour)
	}
	w.c.cycles.ReserveN(w.now, 1)
	w.pass(200 * time.Millisecond)
	w.quietly(time.Second)
	w.want(1, gpu(1))
	w.quietly(250 * time.Millisecond)
	if len(w.kube.changes) != 1 {
		t.Errorf("%d patches within 250 ms, want one", len(w.kube.changes))
	}
}

func TestAWorkerThatHasJustBecomeIdleHasADeadline(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.kube.cluster.IdleTimeout = 500 * time.Millisecond
	w.busy(w.pod(0))
	w.after(40 * time.Second)
	w.idles(w.pod(0))
	w.cycle()
	if stands := w.c.record(key).stands.until.Sub(w.now); stands <= 0 || stands > 600*time.Millisecond {
		t.Errorf("the decision stands for %v, want some time, and no longer than the worker may be idle", stands)
	}
}
