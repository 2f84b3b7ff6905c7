package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheEventIsRepeatedWhenTheMachineGoesSooner(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.busy(w.pod(0))
	begun := w.now
	until := func(seconds int) *departure.Notice {
		return departure.Of(departure.NodeClaimDeleting, "NodeClaim x is being deleted").Until(begun.Add(time.Duration(seconds) * time.Second))
	}
	for _, step := range []struct {
		what   string
		notice *departure.Notice
		want   int
	}{
		{"a sign without a deadline", disrupted(), 1},
		{"the deadline is known", until(600), 2},
		{"the same deadline", until(600), 2},
		{"a little sooner", until(595), 2},
		{"sooner", until(500), 3},
		{"later, which is no hurry", until(900), 3},
		{"sooner than ever", until(300), 4},
	} {
		w.goes(w.pod(0), step.notice)
		w.after(100 * time.Millisecond)
		if got := w.kube.emitted(addon.ReasonWorkerGoing); got != step.want {
			t.Errorf("%s: %d Events, want %d", step.what, got, step.want)
		}
	}
	w.goes(w.pod(0), until(900))
	w.after(2 * time.Minute)
	if got := w.kube.emitted(addon.ReasonWorkerGoing); got != 5 {
		t.Errorf("%d Events, want one more after a while: the machine goes later than the last one said", got)
	}
}

// A node without work ends at once when it drains. The GCS places waiting work on a node in the moment in which it
// joins, when the node still counts as running without any use, and an actor without restarts would be lost.
func TestAWorkerThatJoinsOnAMachineThatGoesIsDrainedOnceItsWorkIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		status   raydemand.NodeStatus
		activity []string
		after    time.Duration
	}{
		"it stays idle":   {raydemand.Idle, nil, placedShown},
		"an actor runs":   {raydemand.Running, []string{raydemand.ActiveWorkers}, placedShown},
		"no report comes": {raydemand.Running, nil, raydemand.ProcessStart},
		"something is reserved, or an actor is being placed": {raydemand.Running, []string{"Resource: GPU currently in use."}, raydemand.ProcessStart},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
			w.want(1, gpu(1))
			w.after(100 * time.Millisecond)
			w.operate()
			pod := w.pod(0)
			w.goes(pod, disrupted())
			w.after(time.Second)
			w.joinAll()
			n := w.node(pod)
			n.Status, n.Activity = c.status, c.activity
			w.after(100 * time.Millisecond)
			for joined := w.now; w.now.Before(joined.Add(c.after - time.Second)); {
				w.after(time.Second)
			}
			if got := w.ray.drained(); len(got) > 0 {
				t.Fatalf("drained %v a second too soon, while work may be on its way there", got)
			}
			w.after(time.Second)
			if got := w.ray.drained(); len(got) != 1 || got[0] != pod {
				t.Errorf("drained %v, want %s", got, pod)
			}
		})
	}
}

// On a worker that has just been idle, an actor may be in the moment of being placed. Ray showed the worker as in use
// 1.1 s after it had sent the actor there; drained then, the worker ended at once, and the actor was lost.
func TestAWorkerThatHasWorkAgainIsNotDrainedYet(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	pod := w.pod(0)
	w.works(pod)
	w.node(pod).Status, w.node(pod).Idle = raydemand.Idle, 100*time.Millisecond
	w.goes(pod, disrupted())
	w.after(100 * time.Millisecond)
	w.busy(pod)
	w.after(100 * time.Millisecond)
	w.after(2 * time.Second)
	if got := w.ray.drained(); len(got) > 0 {
		t.Fatalf("drained %v two seconds after it had been idle", got)
	}
	w.after(time.Second)
	if got := w.ray.drained(); len(got) != 1 {
		t.Errorf("drained %v, want it now that its work has lasted", got)
	}
}

// Short tasks with pauses between them must not put the drain off until the machine is gone.
func TestAWorkerWhoseWorkComesAndGoesIsDrainedInTime(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	pod := w.pod(0)
	w.goes(pod, disrupted())
	w.after(100 * time.Millisecond)
	begun := w.now
	for len(w.ray.drained()) == 0 && w.now.Before(begun.Add(2*unsteady)) {
		w.node(pod).Status, w.node(pod).Idle = raydemand.Idle, 100*time.Millisecond
		w.after(time.Second)
		w.busy(pod)
		w.after(time.Second)
	}
	if took := w.now.Sub(begun); took < unsteady || took > unsteady+2*time.Second {
		t.Errorf("drained after %v, want after %v", took, unsteady)
	}
}

// The same holds for a worker whose work has just ended.
func TestAWorkerThatHasJustBecomeIdleIsNotDrainedYet(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	for range 4 {
		w.after(time.Second)
	}
	w.node(w.pod(0)).Idle = time.Second
	w.goes(w.pod(0), disrupted())
	w.goes(w.pod(1), disrupted())
	w.cycle()
	if got := w.ray.drained(); len(got) != 1 || got[0] != w.pod(1) {
		t.Errorf("drained %v, want only %s, which has been idle for seconds", got, w.pod(1))
	}
}

// A patch may take seconds, for example behind a slow webhook. What Ray said before it is then too old for a drain.
func TestADepartingWorkerThatGotWorkWhileAPatchWasWrittenIsNotDrainedYet(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	for range 4 {
		w.after(time.Second)
	}
	idle, busy := w.pod(0), w.pod(1)
	w.works(busy)
	w.goes(idle, disrupted())
	w.goes(busy, disrupted())
	w.want(2, gpu(1))
	w.kube.writing = func() {
		w.now = w.now.Add(5 * time.Second)
		w.node(idle).Status = raydemand.Running // nothing is in use yet: an actor is being placed
	}
	w.cycle()
	if len(w.kube.changes) != 1 {
		t.Fatalf("patches %v, want one for the replacements", w.kube.changes)
	}
	if got := w.ray.drained(); len(got) != 1 || got[0] != busy {
		t.Errorf("drained %v, want only %s, which has work as before", got, busy)
	}
	w.kube.writing = nil
	w.works(idle)
	if got := w.ray.drained(); len(got) != 2 {
		t.Errorf("drained %v, want both once the work of %s is known", got, idle)
	}
}
