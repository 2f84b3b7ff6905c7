package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
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

func TestDemandThatNobodyCanServeDoesNotKeepTheLoopFast(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 2))
	w.want(1, gpu(64))
	w.cycle()
	var d *addon.Decision
	for range 40 {
		d = w.after(time.Second)
	}
	if d.Next != 200*time.Millisecond {
		t.Errorf("after 40 s without any change the next reading is due in %v, want 200ms", d.Next)
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

func TestManyClustersShareTheReadings(t *testing.T) {
	w := newWorld(t, Config{ReadsPerSecond: 20}, gpuGroup("gpu", 1, 1, 2))
	for i := range 30 {
		w.c.record(nodepool.ClusterKey{Namespace: "other", Name: string(rune('a' + i))})
	}
	w.cycle()
	if d := w.after(2 * time.Minute); d.Next != 3100*time.Millisecond {
		t.Errorf("31 resting clusters on 10 readings a second: next in %v, want 3.1s", d.Next)
	}
}

func TestAnIdleTimeoutIsNotLateWhereReadingsAreRare(t *testing.T) {
	w := newWorld(t, Config{ReadsPerSecond: 20}, gpuGroup("gpu", 1, 0, 2))
	for i := range 30 {
		w.c.record(nodepool.ClusterKey{Namespace: "other", Name: string(rune('a' + i))})
	}
	w.cycle()
	due := w.now.Add(time.Minute - w.node(w.pod(0)).Idle)
	for len(w.ray.drained()) == 0 && w.now.Before(due.Add(time.Minute)) {
		w.quietly(time.Millisecond)
	}
	if d, _ := w.c.Decision(key); d.At.Before(due) || d.At.Sub(due) > 100*time.Millisecond {
		t.Errorf("the idle worker is drained %v after its timeout", d.At.Sub(due))
	}
}

func TestCyclesThatEventsStartKeepToTheReadingsPerSecondToo(t *testing.T) {
	w := newWorld(t, Config{CyclesPerSecond: 10}, gpuGroup("gpu", 1, 1, 2))
	for range 500 { // ten seconds of pod events every 20 ms
		w.pass(20 * time.Millisecond)
		if next := w.c.Cycle(context.Background(), key); next <= 0 || next > time.Second {
			t.Fatalf("the next cycle is due in %v, want it soon", next)
		}
	}
	if w.ray.reads < 100 || w.ray.reads > 110 {
		t.Errorf("%d readings in ten seconds, want 100 and at most the burst of 10 beyond", w.ray.reads)
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
