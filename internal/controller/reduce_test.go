package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAnIdleWorkerIsDrainedThenNamedInOnePatchThenForgotten(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 1, 4))
	w.busy(w.pod(0))
	idle := w.pod(1)
	w.after(59 * time.Second)
	w.nothingWritten("idle for less than the timeout")

	w.after(2 * time.Second)
	if diff := cmp.Diff([]string{idle}, w.ray.drained()); diff != "" {
		t.Fatalf("drained (-want +got):\n%s", diff)
	}
	if d := w.ray.drains[0]; d.Reason != raydemand.DrainIdle || !d.Deadline.IsZero() {
		t.Errorf("drain = %+v, want reason idle without a deadline", d)
	}
	if len(w.kube.changes) != 0 {
		t.Errorf("patched %+v before the drain was confirmed", w.kube.changes)
	}

	w.after(100 * time.Millisecond)
	got := w.lastChange()
	want := nodepool.Target{Group: "gpu", From: 2, Replicas: 1, WorkersToDelete: []string{idle}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	w.after(100 * time.Millisecond)
	w.lastNothing("the name stays while the pod exists")

	w.operate()
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 || got.Replicas != 1 {
		t.Errorf("target = %+v, want the list cleared and replicas kept", got)
	}
	if left := len(w.c.records[key].drains); left != 0 {
		t.Errorf("%d drains are remembered of pods that are gone", left)
	}
	if diff := cmp.Diff([]string{EventDraining, EventScaledDown}, w.kube.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// lastNothing fails when the cluster was patched since the last call; drains before do not matter.
func (w *world) lastNothing(why string) {
	w.t.Helper()
	if len(w.kube.changes) > 0 {
		w.t.Errorf("%s: patched %+v", why, w.kube.changes)
	}
}

func TestABusyWorkerIsNeverDrainedNorNamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.node(w.pod(1)).Idle = time.Hour // a figure that contradicts the status
	for range 20 {
		w.after(10 * time.Second)
	}
	w.nothingWritten("both workers run work")
}

func TestARefusedDrainKeepsTheWorkerAndIsNotRepeatedSoon(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.refuse[w.pod(0)] = true
	w.after(61 * time.Second)
	for range 20 {
		w.after(time.Second)
	}
	if len(w.ray.drains) != 1 || w.kube.told(EventDrainRefused) != 1 {
		t.Errorf("%d drains and events %v, want one refusal: each one marks the node's actors", len(w.ray.drains), w.kube.events)
	}
	w.lastNothing("Ray refused")
	w.after(time.Minute)
	if len(w.ray.drains) != 2 {
		t.Errorf("%d drains, want a second try after the pause", len(w.ray.drains))
	}
}

func TestALostAnswerToADrainCountsAsAcceptedUntilTheNodeIsSeenAlive(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.drainErr = errors.New("deadline exceeded")
	w.after(61 * time.Second)
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 2 {
		t.Errorf("target = %+v, want a second worker: the first may be leaving", got)
	}
	w.want(0, nil)
	w.after(answerWait + time.Second)
	if w.c.records[key].drains.leaving(nodeID(w.pod(0))) {
		t.Error("the node lives on, so its drain did not happen")
	}
}

func TestNothingIsTakenAwayWhileTheGCSDoesNotAnswer(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 1, 4))
	w.cycle()
	w.ray.stateErr = errors.New("unavailable")
	w.want(9, gpu(1))
	w.kube.cluster.RequestResources = []raydemand.Request{{Bundle: gpu(1), Count: 4}}
	for range 10 {
		w.after(20 * time.Second)
	}
	w.nothingWritten("nobody knows what Ray does")
	if w.kube.told(EventGCSUnavailable) != 1 {
		t.Errorf("events = %v, want GCSUnavailable once", w.kube.events)
	}
	d, _ := w.c.Decision(key)
	if d.RayErr == "" || d.Paused == "" || d.Age(w.now) < 3*time.Minute {
		t.Errorf("decision tells error %q, pause %q and age %v", d.RayErr, d.Paused, d.Age(w.now))
	}
}

func TestAHeadThatDoesNotAnswerIsTriedLessAndLessOften(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 4))
	w.ray.stateErr = errors.New("unavailable")
	for range 600 {
		w.after(100 * time.Millisecond)
	}
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
		t.Error("the pause is not told")
	}
}

func TestASuddenDropStopsReductionsUntilSeenTwice(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 5, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	all := slices.Clone(w.kube.cluster.Workers)
	w.kube.cluster.Workers = w.kube.cluster.Workers[:2] // a list cut short
	w.cycle()
	w.nothingWritten("three of five pods vanished at once")
	if w.kube.told(EventReductionsPaused) != 1 {
		t.Errorf("events = %v, want ReductionsPaused", w.kube.events)
	}
	w.after(100 * time.Millisecond)
	w.nothingWritten("the same list again is not a second look")

	w.kube.cluster.Workers = all
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) == 0 {
		t.Error("all pods are back, so reductions should go on")
	}
}

func TestASuddenDropThatIsConfirmedTwiceIsBelieved(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 5, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	w.kube.cluster.Workers = w.kube.cluster.Workers[:2]
	w.cycle()
	before := w.kube.freshReads
	w.after(1200 * time.Millisecond)
	w.nothingWritten("one look is not two")
	w.after(1200 * time.Millisecond)
	if len(w.ray.drains) == 0 || w.kube.freshReads-before < 2 {
		t.Errorf("%d drains after %d fresh lists, want reductions after two", len(w.ray.drains), w.kube.freshReads-before)
	}
}

func TestAGCSThatLosesItsNodesStopsReductions(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 4, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	w.ray.nodes = w.ray.nodes[:2] // the head and one worker
	w.cycle()
	w.nothingWritten("three of four Ray nodes vanished at once")
}

func TestAStateWithoutItsOwnHeadTakesNothingAway(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	w.ray.nodes = w.ray.nodes[1:]
	d := w.cycle()
	w.nothingWritten("the list of nodes is not complete")
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == FindingHeadMissing }) {
		t.Errorf("findings = %+v", d.Findings)
	}
}

func TestTheSecondLookIsFreshAndMustAgree(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	fresh := clone(w.kube.cluster)
	fresh.Groups[0].Min = 2 // raised a moment ago; the cache does not know
	w.kube.fresh = &fresh
	w.cycle()
	w.nothingWritten("the fresh object's minimum keeps both workers")
	if w.kube.freshReads != 1 {
		t.Errorf("%d fresh reads, want 1", w.kube.freshReads)
	}
}

func TestFreezeSeenOnlyInTheFreshObjectStopsTheWholeCycle(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9), gpuGroup("other", 0, 0, 9))
	w.cycle()
	w.pass(2 * time.Minute)
	w.ray.demand.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.Whole(99)}, Count: 1}}
	fresh := clone(w.kube.cluster)
	fresh.Freeze = true
	w.kube.fresh = &fresh
	d := w.cycle()
	w.nothingWritten("the cluster is frozen")
	if d.Mode != nodepool.Shadow || d.Why.Code != Frozen {
		t.Errorf("mode = %v because %v, want shadow because frozen", d.Mode, d.Why.Code)
	}
}

func TestNoNodeIsDrainedWhileTheOperatorIsBehind(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 0, 9))
	w.group("gpu").WorkersToDelete = []string{w.pod(0)} // named and not deleted: the operator is stuck
	w.group("gpu").Replicas = 2
	w.after(2 * time.Minute)
	if len(w.ray.drains) != 0 {
		t.Errorf("drained %v, though the operator does not delete what is named", w.ray.drained())
	}
	w.operate()
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) == 0 {
		t.Error("the operator has caught up, so the idle workers should be drained")
	}
}

func TestAPatchTheOperatorHasNotSeenDelaysDrains(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9), nodepool.WorkerGroup{Name: "cpu", Max: 5,
		Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(64)}})
	w.cycle()
	w.want(1, raydemand.Bundle{raydemand.CPU: raydemand.Whole(64)})
	w.after(2 * time.Minute)
	if len(w.kube.changes) != 1 || len(w.ray.drains) == 0 {
		t.Fatalf("changes %+v, drains %v", w.kube.changes, w.ray.drained())
	}
	w.ray.drains = nil
	w.node(w.pod(1)).Status = raydemand.Idle // as if the second had joined late
	w.node(w.pod(1)).Idle = time.Hour
	w.c.records[key].drains = drains{}
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) != 0 {
		t.Errorf("drained %v before the operator saw generation %d", w.ray.drained(), w.kube.cluster.Generation)
	}
}

func TestADrainedWorkerIsDeletedAfterARestartOfOurs(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.after(61 * time.Second) // both are drained now
	w.restart(Config{})
	w.after(100 * time.Millisecond)
	w.lastNothing("a dead node's container may still come back")
	w.after(31 * time.Second)
	got := w.lastChange()
	if got.Replicas != 0 || len(got.WorkersToDelete) != 2 {
		t.Errorf("target = %+v, want both dead workers gone by name", got)
	}
}

func TestACrashedWorkerIsReplacedByName(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 1))
	w.cycle()
	w.node(w.pod(0)).Status = raydemand.Dead
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	w.nothingWritten("KubeRay replaces ended containers itself")
	for range 4 {
		w.after(10 * time.Second)
		w.operate()
	}
	if w.exists("llm-gpu-1") {
		t.Error("the pod with the dead node still stands")
	}
	w.after(time.Second)
	w.operate()
	if len(w.kube.cluster.Workers) != 1 {
		t.Errorf("workers = %+v, want a new one for the demand", w.kube.cluster.Workers)
	}
}

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

func TestAMultiHostReplicaLeavesAsAUnit(t *testing.T) {
	slice := gpuGroup("slice", 2, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{}, slice)
	w.busy(w.pod(3))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	got := w.lastChange()
	if got.Replicas != 1 || len(got.WorkersToDelete) != 2 || slices.Contains(got.WorkersToDelete, w.pod(3)) {
		t.Errorf("target = %+v, want one replica less and both of its hosts named", got)
	}
}

func TestAMultiHostReplicaStaysWhenOneHostRefuses(t *testing.T) {
	slice := gpuGroup("slice", 1, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{}, slice)
	w.ray.refuse[w.pod(1)] = true
	w.after(61 * time.Second)
	for range 50 {
		w.after(time.Second)
	}
	w.lastNothing("one of its hosts still works")
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

func TestOnlyPodsOfThisClusterAndGroupAreEverNamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	stranger := nodepool.Worker{Pod: "llm-old-1", Group: "removed", CreatedAt: w.now}
	w.kube.cluster.Workers = append(w.kube.cluster.Workers, stranger)
	dead := *w.node(w.pod(0))
	dead.ID, dead.Instance, dead.Group, dead.Status = nodeID("llm-old-1"), "llm-old-1", "removed", raydemand.Dead
	foreign := dead
	foreign.ID, foreign.Instance, foreign.Status, foreign.Idle = nodeID("someone-else"), "someone-else", raydemand.Idle, time.Hour
	w.ray.nodes = append(w.ray.nodes, dead, foreign)
	var d *Decision
	for range 20 {
		d = w.after(10 * time.Second)
	}
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
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == FindingUnknownGroup }) {
		t.Errorf("findings = %+v, want the pod of the removed group", d.Findings)
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
	if len(w.ray.drains) != 1 {
		t.Errorf("drained %v, want only the worker that both looks let go", w.ray.drained())
	}
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

func TestTheOtherHostsOfARefusedReplicaAreNotAsked(t *testing.T) {
	slice := gpuGroup("slice", 1, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{}, slice)
	w.ray.refuse[w.pod(0)] = true
	w.after(61 * time.Second)
	if got := w.ray.drained(); !slices.Equal(got, []string{w.pod(0)}) {
		t.Errorf("drained %v, want only the host that refused", got)
	}
}

func TestARefusedWorkerServesDemandAgainAtOnce(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.refuse[w.pod(0)] = true
	w.after(61 * time.Second)
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	w.lastNothing("the worker that refused can serve it")
}

func TestAnAcceptedDrainThatEndsNothingIsForgottenInTime(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.immortal = true
	w.after(61 * time.Second)
	w.after(30 * time.Second)
	if !w.c.records[key].drains.leaving(nodeID(w.pod(0))) {
		t.Error("the drain was accepted, so the node leaves")
	}
	w.after(31 * time.Second)
	if w.c.records[key].drains.leaving(nodeID(w.pod(0))) {
		t.Error("a minute later the node still lives: it does not leave")
	}
	w.lastNothing("a living worker is never named")
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
	if w.kube.told(EventGroupFailing) != 1 {
		t.Fatalf("events = %v, want the group broken off", w.kube.events)
	}
	if got := w.lastChange(); got.Replicas != 1 || slices.Contains(got.WorkersToDelete, "llm-gpu-late") {
		t.Errorf("target = %+v, want only the old pod gone", got)
	}
}

func TestAStuckPodOfTheMinimumStays(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute, BreakerCooldown: time.Hour}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Min, w.group("gpu").Replicas = 1, 1
	w.operate()
	for range 30 {
		w.after(10 * time.Second)
	}
	if w.kube.told(EventGroupFailing) != 1 {
		t.Fatalf("events = %v, want the group broken off", w.kube.events)
	}
	w.nothingWritten("the operator would only make it anew")
}

func TestAnOutageOfTheGCSLetsNoClockRunOut(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	w.cycle()
	w.operate()
	w.after(time.Second)
	w.kube.changes = nil
	w.ray.stateErr = errors.New("unavailable")
	for range 20 {
		w.after(15 * time.Second)
	}
	w.ray.stateErr = nil
	w.after(15 * time.Second)
	w.nothingWritten("nobody could have been seen to join")
	if w.kube.told(EventGroupFailing) != 0 {
		t.Errorf("events = %v, want the group open", w.kube.events)
	}
	w.want(0, nil)
	w.after(time.Second)
	w.ray.stateErr = errors.New("unavailable")
	for range 20 {
		w.after(15 * time.Second)
	}
	w.ray.stateErr = nil
	w.after(15 * time.Second)
	w.nothingWritten("that nothing was asked for during the outage was not seen")
}

func TestRemovalsKeepReplicasWhole(t *testing.T) {
	host := func(pod, replica string) member {
		return member{Worker: nodepool.Worker{Pod: pod, Group: "slice", Replica: replica}}
	}
	members := []member{host("a0", "a"), host("a1", "a"), host("b0", "b"), host("b1", "b")}
	going := []removal{{pod: "a0", group: "slice"}, {pod: "b0", group: "slice"}, {pod: "b1", group: "slice"}}
	got := podsOf(wholeReplicas(members, going))
	if diff := cmp.Diff([]string{"b0", "b1"}, got); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
	group := gpuGroup("slice", 2, 1, 4)
	group.NumOfHosts = 2
	both := []removal{{pod: "a0", group: "slice"}, {pod: "b0", group: "slice"}, {pod: "a1", group: "slice"}, {pod: "b1", group: "slice"}}
	got = podsOf(keepMinimum(nodepool.Cluster{Groups: []nodepool.WorkerGroup{group}}, members, both))
	if diff := cmp.Diff([]string{"a0", "a1"}, got); diff != "" {
		t.Errorf("removals above the minimum (-want +got):\n%s", diff)
	}
}

func TestAScaleDownOfOurOwnIsNoSuddenDrop(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 5, 0, 9))
	w.after(61 * time.Second) // drained
	w.operate()
	w.after(100 * time.Millisecond) // named, and deleted before the next reading
	w.operate()
	d := w.after(100 * time.Millisecond)
	if w.kube.told(EventReductionsPaused) != 0 || d.Paused != "" {
		t.Errorf("events %v, pause %q: five workers left because we let them go", w.kube.events, d.Paused)
	}
	if len(w.kube.cluster.Workers) != 0 {
		t.Errorf("%d workers are left", len(w.kube.cluster.Workers))
	}
}

func TestANodeIsNotDrainedWhereItsPodCouldNotBeDeleted(t *testing.T) {
	for name, change := range map[string]func(*nodepool.Cluster){
		"the operator refuses the spec": func(c *nodepool.Cluster) { c.Refused = true },
		"the group is broken":           func(c *nodepool.Cluster) { c.Groups[0].Broken = true },
		"the group is suspended":        func(c *nodepool.Cluster) { c.Groups[0].Suspended = true },
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9))
		change(&w.kube.cluster)
		w.after(2 * time.Minute)
		w.nothingWritten(name)
	}
}

func TestAnOperatorThatIsBehindDoesNotCostAFreshListPerCycle(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 0, 9))
	w.group("gpu").WorkersToDelete, w.group("gpu").Replicas = []string{w.pod(0)}, 2
	w.pass(2 * time.Minute)
	for range 50 {
		w.after(100 * time.Millisecond)
	}
	if w.kube.freshReads > 0 {
		t.Errorf("%d fresh lists while nothing may be done anyway", w.kube.freshReads)
	}
}

func TestNothingIsTakenFromARaySessionFirstSeenJustNow(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 9))
	w.pass(2 * time.Minute)
	w.restart(Config{})
	w.cycle()
	w.nothingWritten("this is the first reading")
	w.after(2 * time.Second)
	if len(w.ray.drains) != 2 {
		t.Errorf("drained %v two seconds later, want both idle workers", w.ray.drained())
	}
}

func TestAWorkerThatRefusedAndThenWorkedIsAskedAgainAfterTheIdleTimeoutAlone(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.refuse[w.pod(0)] = true
	w.kube.cluster.IdleTimeout = 5 * time.Second
	w.after(6 * time.Second)
	w.ray.refuse[w.pod(0)] = false
	w.busy(w.pod(0))
	w.after(time.Second)
	n := w.node(w.pod(0))
	n.Status, n.Idle, n.Available = raydemand.Idle, time.Second, n.Total.Clone()
	w.after(time.Second)
	w.after(5 * time.Second)
	if len(w.ray.drains) != 2 {
		t.Errorf("%d drains, want the second one idle timeout after the work", len(w.ray.drains))
	}
}
