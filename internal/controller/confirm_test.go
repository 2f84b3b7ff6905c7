package controller

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAPodThatJoinsDuringTheSecondLookStays(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Replicas = 1
	w.operate() // the pod is there, and slow to join
	w.kube.onFresh = func() {
		w.now = w.now.Add(3 * time.Second)
		if len(w.ray.nodes) == 1 {
			w.joinAll()
			w.busy(w.pod(0))
		}
	}
	for range 90 {
		w.after(time.Second)
	}
	if w.kube.freshReads == 0 {
		t.Fatal("the pod was never about to go")
	}
	w.nothingWritten("the worker joined and got work while the fresh list was read")
}

func TestANodeThatGetsWorkDuringTheSecondLookIsNotDrained(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.kube.onFresh = func() { w.busy(w.pod(0)) }
	w.after(61 * time.Second)
	if got := w.ray.drained(); len(got) != 1 || got[0] != w.pod(1) {
		t.Errorf("drained %v, want only %s: even a refused drain marks actors", got, w.pod(1))
	}
}

func TestNoPodGoesForAnAbsenceThatRayReportedTooSlowly(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Replicas = 1
	w.operate()
	w.kube.onFresh = func() { w.ray.reading = func() { w.now = w.now.Add(1100 * time.Millisecond) } }
	for range 65 {
		w.after(time.Second)
	}
	if w.kube.freshReads == 0 {
		t.Fatal("the pod was never about to go")
	}
	w.nothingWritten("the reading is older than a raylet's report")
	w.kube.onFresh, w.ray.reading = nil, nil
	w.after(time.Second)
	if got := w.lastChange(); got.Replicas != 0 {
		t.Errorf("target = %+v, want the pod gone once Ray answers in time", got)
	}
}

func TestNothingIsTakenAwayWhenRaySecondReadingFailsOrIsAnothers(t *testing.T) {
	for name, change := range map[string]func(*world){
		"Ray does not answer again":      func(w *world) { w.ray.stateErr = errors.New("unavailable") },
		"the GCS has lost its head":      func(w *world) { w.ray.nodes = w.ray.nodes[1:] },
		"another Ray session has begun":  func(w *world) { w.ray.session = "session-2" },
		"the node was born anew":         func(w *world) { w.node(w.pod(0)).ID = nodeID("born anew") },
		"the node's death became public": func(w *world) { w.node(w.pod(0)).Status = raydemand.Dead },
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
		w.kube.onFresh = func() { change(w) }
		w.after(61 * time.Second)
		if w.kube.freshReads == 0 {
			t.Fatal("the worker was never about to go")
		}
		w.nothingWritten(name)
	}
}

func TestAReplicaOfWhichOneHostGetsWorkIsNotDrained(t *testing.T) {
	slice := gpuGroup("slice", 1, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{}, slice)
	w.kube.onFresh = func() { w.busy(w.pod(1)) }
	w.after(61 * time.Second)
	w.nothingWritten("its other host works")
}

func TestARoundOfDrainsEndsWhenItsReadingHasGrownOld(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 12, 0, 12))
	w.ray.draining = func() { w.now = w.now.Add(400 * time.Millisecond) }
	w.after(61 * time.Second)
	if got := len(w.ray.drains); got != 3 {
		t.Fatalf("%d drains on one reading, want 3: after 1.2 s it proves nothing", got)
	}
	w.ray.draining = nil
	w.after(100 * time.Millisecond)
	if got := len(w.ray.drains); got != 12 {
		t.Errorf("%d drains, want the rest with the next cycle", got)
	}
}

func TestARoundOfDrainsEndsWhenTheClusterIsNoLongerOurs(t *testing.T) {
	for name, change := range map[string]func(*nodepool.Cluster){
		"frozen":         func(c *nodepool.Cluster) { c.Freeze = true },
		"being deleted":  func(c *nodepool.Cluster) { c.Deleting = true },
		"shadow by hand": func(c *nodepool.Cluster) { c.Mode = nodepool.Shadow },
		"created anew":   func(c *nodepool.Cluster) { c.UID = "uid-2" },
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 12, 0, 12))
		w.ray.draining = func() { change(&w.kube.cluster) }
		w.after(61 * time.Second)
		if got := len(w.ray.drains); got != 1 {
			t.Errorf("%s during the first drain: %d drains, want 1", name, got)
		}
	}
}
