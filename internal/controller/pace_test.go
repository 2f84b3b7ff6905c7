package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestTheLoopIsFastWhileAnythingMovesAndSlowAtRest(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 2))
	w.cycle()
	if d := w.after(2 * time.Minute); d.Next != 200*time.Millisecond {
		t.Errorf("at rest the next reading is due in %v, want 200ms", d.Next)
	}
	w.busy(w.pod(0))
	w.after(2 * time.Second)
	w.want(1, gpu(1))
	if d := w.after(2 * time.Second); d.Next != 100*time.Millisecond {
		t.Errorf("with demand the next reading is due in %v, want 100ms", d.Next)
	}
	w.want(0, nil)
	if d := w.after(time.Second); d.Next != 100*time.Millisecond {
		t.Errorf("with a pod on its way the next reading is due in %v, want 100ms", d.Next)
	}
}

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

func TestNothingIsDueAtRest(t *testing.T) {
	m, v := newMemory(), viewOf(2)
	v.Cluster.Groups[0].Min = 2
	v.Cluster.IdleTimeout = time.Minute
	m.Remember(&v, settings())
	v = later(v, 40*time.Second)
	for k := range v.State.Nodes {
		v.State.Nodes[k].Idle = 40 * time.Second
	}
	m.Remember(&v, settings())
	i, err := m.Decide(v, settings(), planned, nil)
	if err != nil || !m.AtRest(&v, &i) || m.Motion(&v, &i) != idle {
		t.Fatalf("decided %+v, error %v; want rest", i.Plan, err)
	}
	if got := untilDeadline(&v, &i); got != 20*time.Second+time.Millisecond {
		t.Errorf("the next deadline is in %v, want it when the workers have been idle for a minute", got)
	}
	m.FreshRead(v.Now, errors.New("timeout"))
	if m.AtRest(&v, &i) {
		t.Error("at rest although the RayCluster cannot be read")
	}
	v.Now = v.Now.Add(time.Minute)
	if !m.AtRest(&v, &i) {
		t.Error("not at rest although nothing waits for another reading any more")
	}
	m.FreshRead(v.Now, errors.New("timeout"))
	m.FreshRead(v.Now, nil)
	if !m.AtRest(&v, &i) {
		t.Error("not at rest although the RayCluster could be read again")
	}
}

func TestClustersShareHalfOfTheReadings(t *testing.T) {
	s := Config{FastPoll: 100 * time.Millisecond, RestPoll: 200 * time.Millisecond, ReadsPerSecond: 4000, CyclesPerSecond: 400,
		Jitter: func() float64 { return 0.5 }}
	for _, c := range []struct {
		clusters                                                          int
		moving, following, stands, settling, settlingTurn, waits, resting time.Duration // milliseconds
	}{
		{1, 100, 100, 50, 100, 200, 1000, 200},
		{20, 100, 100, 400, 100, 200, 1000, 200},
		{100, 500, 200, 1000, 200, 500, 2000, 400},
		{1000, 5000, 2000, 2500, 600, 5000, 20000, 600},
		{5000, 25000, 10000, 12500, 2500, 25000, 30000, 2500},
	} {
		n := counts{active: c.clusters, waiting: c.clusters, still: c.clusters}
		settles := counts{settling: c.clusters, still: c.clusters}
		for _, row := range []struct {
			what      string
			got, want time.Duration
		}{
			{"between cycles of an active one", s.turn(active, n), c.moving},
			{"between readings of an active one", s.interval(active, n), c.following},
			{"for which a decision about an active one stands", s.stands(active, n), c.stands},
			{"between readings of one that settles", s.interval(settling, settles), c.settling},
			{"between cycles of one that settles", s.turn(settling, settles), c.settlingTurn},
			{"for which a decision about one that waits stands", s.stands(waiting, n), c.waits},
			{"between readings of one at rest", s.IdleInterval(c.clusters), c.resting},
		} {
			if row.got != row.want*time.Millisecond {
				t.Errorf("%d clusters: the time %s is %v, want %v", c.clusters, row.what, row.got, row.want*time.Millisecond)
			}
		}
	}
}

func TestAHeadThatDoesNotAnswerKeepsOthersWaitingForAMomentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEntries()
		begun := time.Now()
		var leaves []func()
		for range entering {
			leaves = append(leaves, e.Enter(t.Context()))
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("%d waited for %v, want at once", entering, took)
		}
		leave := e.Enter(t.Context()) // the first ones have neither connected nor failed
		if took := time.Since(begun); took != longestEntry {
			t.Errorf("one more waited for %v, want %v", took, longestEntry)
		}
		leave()
		for _, late := range leaves {
			late() // their places are free already
		}
		if len(e.places) != 0 {
			t.Errorf("%d places are taken", len(e.places))
		}
	})
}

func TestNobodyWaitsWhenTheProcessEnds(t *testing.T) {
	e := newEntries()
	for range entering {
		e.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Enter(ctx)()
	if len(e.places) != entering {
		t.Errorf("%d places are taken, want %d", len(e.places), entering)
	}
}
