package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// start makes the pod's Ray container run from now on.
func (w *world) start(i int) {
	p := &w.kube.cluster.Workers[i]
	p.Running, p.ScheduledAt, p.StartedAt = true, w.now, w.now
}

// newUnneededPod has one pod whose container does not run yet, asked for by work that is gone.
func newUnneededPod(t *testing.T) *world {
	w := newWorld(t, Config{AllocationTimeout: 5 * time.Minute}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	w.cycle()
	w.lastChange()
	w.operate()
	w.want(0, nil)
	w.after(time.Second)
	return w
}

func TestAPodWhoseRayIsStartingIsLetJoinAndThenDrained(t *testing.T) {
	w := newUnneededPod(t)
	w.after(55 * time.Second)
	w.start(0)
	w.seconds(30)
	w.lastNothing("Ray may give it work in the moment in which it joins")
	w.joinAll()
	w.after(time.Second)
	w.after(61 * time.Second)
	if got := w.ray.drained(); !slices.Equal(got, []string{w.pod(0)}) {
		t.Fatalf("drained %v, want the worker, once it was idle for long enough", got)
	}
	w.after(time.Second)
	w.patchedTo(0, "the drained pod gone")
}

func TestAPodThatRunsAndNeverJoinsIsWithdrawnAfterTheAllocationTimeout(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: 5 * time.Minute, BreakerCooldown: time.Hour}, gpuGroup("gpu", 1, 0, 4))
	w.kube.cluster.Workers[0].Running = false
	w.ray.nodes = w.ray.nodes[:1]
	w.start(0)
	w.cycles(29, 10*time.Second)
	w.lastNothing("it may still join")
	w.cycles(2, 10*time.Second)
	w.patchedTo(0, "the pod gone")
}

func TestAPodAboveALoweredMaximumWhoseRayIsStartingIsLetJoin(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(2, gpu(1))
	w.cycle()
	w.lastChange()
	w.operate()
	w.start(0)
	w.limit("gpu", 0)
	if got := w.lastChange(); !slices.Equal(got.WorkersToDelete, []string{w.pod(1)}) {
		t.Errorf("target = %+v, want only the pod gone whose container does not run", got)
	}
}

// aboveMaximum has one pod that has not joined, above the maximum, and an impossible demand to report.
func aboveMaximum(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	w.cycle()
	w.lastChange()
	w.operate()
	w.want(1, gpu(100))
	w.group("gpu").Max = 0
	return w
}

func TestNoPodGoesByNameOnALookThatHasGrownOld(t *testing.T) {
	w := aboveMaximum(t)
	w.kube.recording = func() { w.now = w.now.Add(1100 * time.Millisecond) }
	w.after(time.Second)
	if len(w.kube.events) == 0 {
		t.Fatal("nothing was reported, so no time has passed between look and patch")
	}
	w.lastNothing("a pod may join within a second")
	w.kube.recording = nil
	w.after(time.Second)
	if got := w.lastChange(); len(got.WorkersToDelete) != 1 {
		t.Errorf("target = %+v, want the pod gone on the next look", got)
	}
}

func TestNoPodGoesByNameOnASpecThatHasChangedSince(t *testing.T) {
	w := aboveMaximum(t)
	w.kube.recording = func() { w.kube.cluster.Generation++ }
	d := w.after(time.Second)
	if !slices.ContainsFunc(d.Actions, func(a addon.Action) bool { return a.Result == addon.ResultConflict }) {
		t.Errorf("actions = %+v, want a conflict: the spec is not the one that the pod was chosen from", d.Actions)
	}
	if names := w.group("gpu").WorkersToDelete; len(names) > 0 {
		t.Errorf("%v was named", names)
	}
}

func TestADrainedPodThatComesToLifeDuringTheSecondLookStays(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.after(61 * time.Second)
	w.drains(1, "the idle worker")
	w.kube.onFresh = func() {
		reborn := *w.node(w.pod(0))
		reborn.ID, reborn.Status, reborn.Available = nodeID("reborn"), raydemand.Running, raydemand.Bundle{}
		w.ray.nodes = append(w.ray.nodes, reborn)
		w.kube.onFresh = nil
	}
	w.after(time.Second)
	w.lastNothing("its container was started anew, and the new Ray node works")
	if w.kube.onFresh != nil {
		t.Fatal("the pod was never about to go")
	}
}

func TestAContainerThatWasStartedAnewIsGivenTheWholeGraceOfADeadNode(t *testing.T) {
	w := newWorld(t, Config{DeadGrace: 30 * time.Second}, gpuGroup("gpu", 1, 0, 4))
	w.node(w.pod(0)).Status = raydemand.Dead
	w.after(time.Second)
	w.after(28 * time.Second)
	w.start(0)
	w.after(5 * time.Second)
	w.lastNothing("Ray is being started in it again")
	w.after(26 * time.Second)
	if got := w.lastChange(); !slices.Equal(got.WorkersToDelete, []string{w.pod(0)}) {
		t.Errorf("target = %+v, want the pod gone that did not come back", got)
	}
}

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
	w.seconds(90)
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
	w.seconds(65)
	if w.kube.freshReads == 0 {
		t.Fatal("the pod was never about to go")
	}
	w.nothingWritten("the reading is older than a raylet's report")
	w.kube.onFresh, w.ray.reading = nil, nil
	w.after(time.Second)
	w.patchedTo(0, "the pod gone once Ray answers in time")
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

func TestANamedPodThatComesBackToLifeIsTakenOffTheList(t *testing.T) {
	for name, restart := range map[string]bool{"by the process that named it": false, "after a restart of ours": true} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 5))
		w.busy(w.pod(1))
		w.after(61 * time.Second)
		w.after(100 * time.Millisecond)
		w.patchedTo(1, "the drained worker gone by name")
		// An earlier group holds the operator up, and the container is started again.
		second := *w.node(w.pod(0))
		second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
		w.ray.nodes = append(w.ray.nodes, second)
		if restart {
			w.restart(Config{})
		}
		d := w.after(100 * time.Millisecond)
		got := w.lastChange()
		if got.Replicas != 2 || got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 {
			t.Errorf("%s: target = %+v, want the name taken back and a replica more", name, got)
		}
		const stays = "replicas 1 → 2: named workers in which Ray has started again stay (1)"
		if len(d.Actions) == 0 || !strings.Contains(d.Actions[0].Message, stays) {
			t.Errorf("%s: actions %+v, want %q", name, d.Actions, stays)
		}
		if !hasFinding(d, "name-taken-back") {
			t.Errorf("%s: findings = %+v", name, d.Findings)
		}
		w.after(100 * time.Millisecond)
		w.lastNothing("it is taken back once")
	}
}

// The patch that names a pod is stored, and its answer is lost.
func TestAPodThatWasNamedWithoutAnAnswerIsTakenOffTheListToo(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 5))
	w.busy(w.pod(1))
	w.after(61 * time.Second)
	w.kube.lostAnswer = errors.New("the connection was reset")
	w.after(100 * time.Millisecond)
	w.patchedTo(1, "the drained worker gone by name")
	w.kube.lostAnswer = nil
	second := *w.node(w.pod(0))
	second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
	*w.node(w.pod(0)) = second // Ray has forgotten the first one
	w.after(time.Second)
	if got := w.lastChange(); got.Replicas != 2 || got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 {
		t.Errorf("target = %+v, want the name taken back and a replica more", got)
	}
}

// TestAPodThatCameBackToLifeIsNotTakenAsDrainedAgain has a head that leaves out the second node of a pod, whose first one
// was drained.
func TestAPodThatCameBackToLifeIsNotTakenAsDrainedAgain(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 4, 0, 5))
	w.busy(w.pod(1))
	w.busy(w.pod(2))
	w.busy(w.pod(3))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	w.patchedTo(3, "the drained worker gone by name")
	all := slices.Clone(w.ray.nodes)
	second := *w.node(w.pod(0))
	second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
	w.ray.nodes = append(w.ray.nodes, second)
	w.after(100 * time.Millisecond)
	w.patchedTo(4, "the name taken back")
	w.after(time.Second)
	w.ray.nodes = all
	w.seconds(3)
	w.lastNothing("its node is left out, and was never drained")
}

// TestANamedPodThatComesBackToLifeTakesThePlaceOfALaunch has an operator that stands still: new demand has raised the
// replicas to the maximum again, and the pod for it does not exist yet.
func TestANamedPodThatComesBackToLifeTakesThePlaceOfALaunch(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
	w.kube.cluster.InTreeAutoscaling = false
	w.busy(w.pod(1))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 1 || len(got.WorkersToDelete) != 1 {
		t.Fatalf("target = %+v, want the drained worker gone by name", got)
	}
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 2 || got.WorkersToDelete != nil {
		t.Fatalf("target = %+v, want a launch beside the pod that is named", got)
	}
	second := *w.node(w.pod(0))
	second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
	w.ray.nodes = append(w.ray.nodes, second)
	w.want(0, nil)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 2 || got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 {
		t.Errorf("target = %+v, want the name taken back: it has work, and the launched pod does not exist", got)
	}
}

func TestANamedPodIsTakenOffTheListWhenItsContainerRunsAtLast(t *testing.T) {
	w := newUnneededPod(t)
	w.after(61 * time.Second)
	if got := w.lastChange(); got.Replicas != 0 || len(got.WorkersToDelete) != 1 {
		t.Fatalf("target = %+v, want the pod gone whose container does not run", got)
	}
	w.start(0) // its image is there, and an earlier group holds the operator up
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 1 || len(got.WorkersToDelete) != 0 {
		t.Fatalf("target = %+v, want the name taken back: Ray may give it work as soon as it joins", got)
	}
	w.joinAll()
	w.busy(w.pod(0))
	w.after(2 * time.Minute)
	w.lastNothing("it has work")
}

func TestADrainedPodWhoseContainerStartsAnewStillGoes(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: 5 * time.Minute}, gpuGroup("gpu", 2, 0, 5))
	w.busy(w.pod(1))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	w.patchedTo(1, "the drained worker gone by name")
	w.start(0) // its kubelet restarts what has ended
	w.after(100 * time.Millisecond)
	w.lastNothing("its node is dead")
	w.ray.nodes = slices.DeleteFunc(w.ray.nodes, func(n raydemand.Node) bool { return n.Instance == w.pod(0) })
	w.after(100 * time.Millisecond)
	w.lastNothing("Ray let it go, and has forgotten it")
}

func TestALivingPodThatSomebodyElseNamedIsLeftToTheOperator(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 5))
	w.busy(w.pod(0))
	w.group("gpu").Replicas, w.group("gpu").WorkersToDelete = 1, []string{w.pod(0)}
	w.after(100 * time.Millisecond)
	w.nothingWritten("a person may take a busy worker away")
}
