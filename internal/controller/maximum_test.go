package controller

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestABusyWorkerAboveALoweredMaximumGetsADeadlineThatWeKeep(t *testing.T) {
	w := newWorld(t, Config{DrainDeadline: 5 * time.Minute}, gpuGroup("gpu", 2, 0, 2))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.cycle()
	w.group("gpu").Max = 1
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) != 1 || w.ray.drains[0].Reason != raydemand.DrainPreemption ||
		!w.ray.drains[0].Deadline.Equal(w.now.Add(5*time.Minute)) {
		t.Fatalf("drains = %+v, want one preemption with the deadline", w.ray.drains)
	}
	victim := w.ray.drains[0].Node.Instance
	w.after(299 * time.Second)
	w.lastNothing("the deadline is not over")
	w.after(2 * time.Second)
	if got := w.lastChange(); got.Replicas != 1 || !slices.Equal(got.WorkersToDelete, []string{victim}) {
		t.Errorf("target = %+v, want %s gone by name", got, victim)
	}
}

func TestADeadlineDoesNotCountOnceTheMaximumIsRaisedAgain(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.group("gpu").Max = 1
	w.cycle()
	w.group("gpu").Max = 2
	w.after(time.Hour)
	w.lastNothing("the draining worker may finish its work")
}

func TestIdleWorkersGoFirstWhenTheMaximumIsLowered(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 0, 3))
	w.busy(w.pod(0))
	w.busy(w.pod(2))
	w.group("gpu").Max = 2
	w.cycle()
	if len(w.ray.drains) != 1 || w.ray.drains[0].Node.Instance != w.pod(1) || w.ray.drains[0].Reason != raydemand.DrainIdle {
		t.Errorf("drains = %+v, want the idle worker by an idle drain", w.ray.drains)
	}
}

func TestPodsThatNobodyNeedsAnyMoreGoOnlyAfterTheIdleTimeout(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(2, gpu(1))
	w.cycle()
	w.lastChange()
	w.operate()
	w.want(0, nil)
	w.after(time.Second)
	w.after(55 * time.Second)
	w.lastNothing("the demand may come back")
	w.after(10 * time.Second)
	if got := w.lastChange(); got.Replicas != 0 || len(got.WorkersToDelete) != 2 {
		t.Errorf("target = %+v, want both pods gone by name", got)
	}
}

func TestADrainFoundUnderWayGetsADeadlineToo(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.group("gpu").Max = 1
	w.cycle()
	w.restart(Config{DrainDeadline: 5 * time.Minute})
	w.after(time.Second)
	w.after(299 * time.Second)
	w.lastNothing("the deadline, counted anew after our restart, is not over")
	w.after(2 * time.Second)
	if got := w.lastChange(); got.Replicas != 1 || len(got.WorkersToDelete) != 1 {
		t.Errorf("target = %+v, want the draining worker gone by name", got)
	}
	if len(w.ray.drains) != 1 {
		t.Errorf("drained %v, want no second drain: the one under way is recognised", w.ray.drained())
	}
}

func TestPodsOnTheirWayAboveALoweredMaximumGoByNameAtOnce(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.busy(w.pod(0))
	w.after(2 * time.Second)
	w.want(2, gpu(1))
	w.after(2 * time.Second)
	w.lastChange()
	w.operate()
	w.group("gpu").Max = 2
	w.after(time.Second)
	got := w.lastChange()
	if got.Replicas != 2 || len(got.WorkersToDelete) != 1 || got.WorkersToDelete[0] == w.pod(0) {
		t.Errorf("target = %+v, want one pod that never joined gone by name", got)
	}
}

func TestStuckPodsGoByNameOnceTheyAreOldEnough(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute, BreakerCooldown: time.Hour}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Replicas = 2
	w.want(2, gpu(1))
	w.operate()
	w.cycle()
	w.after(50 * time.Second)
	late := w.kube.cluster.Workers[1]
	late.Pod = "llm-gpu-late"
	w.kube.cluster.Workers[1] = late // the operator replaced one
	w.after(15 * time.Second)
	if w.kube.emitted(addon.ReasonGroupFailing) != 1 {
		t.Fatalf("events = %v, want the group broken off", w.kube.events)
	}
	if got := w.lastChange(); got.Replicas != 1 || slices.Contains(got.WorkersToDelete, "llm-gpu-late") {
		t.Errorf("target = %+v, want only the old pod gone", got)
	}
}

func TestAPodWithANodeMayTakeLongToStart(t *testing.T) {
	for name, c := range map[string]struct {
		runsAfter time.Duration // 0: its containers are never made
		want      time.Duration
	}{
		"a pod that is never made goes after half an hour":                       {want: 30 * time.Minute},
		"a pod that runs goes when it has not joined within the timeout by then": {runsAfter: 7 * time.Minute, want: 12 * time.Minute},
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
		w.group("gpu").Replicas = 1
		w.operate()
		w.want(1, gpu(1))
		start := w.now
		pod := &w.kube.cluster.Workers[0]
		pod.ScheduledAt = start
		for len(w.kube.changes) == 0 && w.now.Sub(start) < time.Hour {
			if c.runsAfter > 0 && w.now.Sub(start) == c.runsAfter {
				pod.Running, pod.StartedAt = true, w.now
			}
			w.after(10 * time.Second)
		}
		// The breaker is open for 5, 10, 20 minutes with pauses of 5 minutes in between, in which nothing goes.
		if got := w.now.Sub(start); got < c.want || got > c.want+6*time.Minute {
			t.Errorf("%s: patched after %v, want from %v on", name, got, c.want)
		}
		if got := w.lastChange(); !slices.Equal(got.WorkersToDelete, []string{pod.Pod}) {
			t.Errorf("%s: target = %+v, want the pod gone by name", name, got)
		}
	}
}

func TestAStuckPodOfTheMinimumStays(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute, BreakerCooldown: time.Hour}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Min, w.group("gpu").Replicas = 1, 1
	w.operate()
	for range 30 {
		w.after(10 * time.Second)
	}
	if w.kube.emitted(addon.ReasonGroupFailing) != 1 {
		t.Fatalf("events = %v, want the group broken off", w.kube.events)
	}
	w.nothingWritten("the operator would only make it anew")
}

func TestAtTheDeadlineNoMoreBusyWorkersGoThanTheMaximumDemands(t *testing.T) {
	w := newWorld(t, Config{DrainDeadline: 5 * time.Minute}, gpuGroup("gpu", 5, 0, 5))
	for i := range 5 {
		w.busy(w.pod(i))
	}
	w.group("gpu").Max = 3
	w.after(100 * time.Millisecond)
	victims := w.ray.drained()
	if len(victims) != 2 {
		t.Fatalf("drained %v, want two of five", victims)
	}
	for _, p := range w.kube.cluster.Workers { // another one's work ends before the deadline
		if !slices.Contains(victims, p.Pod) {
			n := w.node(p.Pod)
			n.Status, n.Idle, n.Available = raydemand.Idle, 0, n.Total.Clone()
			break
		}
	}
	for range 400 {
		w.after(time.Second)
		w.operate()
	}
	if left := len(w.kube.cluster.Workers); left != 3 {
		t.Errorf("%d workers are left, want 3: the one that fell idle counts", left)
	}
}

func TestOverdueReplicasGoWholeAndOnlyAsFarAsTheMaximumDemands(t *testing.T) {
	slice := gpuGroup("slice", 4, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{DrainDeadline: time.Minute}, slice)
	for i := range 8 {
		w.busy(w.pod(i))
	}
	w.group("slice").Max = 2
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) != 4 {
		t.Fatalf("drained %v, want two replicas of two hosts", w.ray.drained())
	}
	gone := w.ray.drains[0].Node.Instance
	w.node(gone).Status = raydemand.Dead // its work ended, so Ray let the node go
	w.group("slice").Max = 3
	for range 70 {
		w.after(time.Second)
		w.operate()
	}
	if left := len(w.kube.cluster.Workers); left != 6 || w.exists(gone) {
		t.Errorf("%d workers are left and the one that ended stands: %v, want 6 without it", left, w.exists(gone))
	}
}
