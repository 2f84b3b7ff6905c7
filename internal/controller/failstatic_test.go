package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
	if w.kube.emitted(addon.ReasonGCSUnavailable) != 1 {
		t.Errorf("events = %v, want GCSUnavailable once", w.kube.events)
	}
	d, _ := w.c.Decision(key)
	if d.RayErr == "" || d.Paused == "" || d.Age(w.now) < 3*time.Minute {
		t.Errorf("decision has error %q, pause %q and age %v", d.RayErr, d.Paused, d.Age(w.now))
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
		t.Error("the pause is not reported")
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
	if w.kube.emitted(addon.ReasonReductionsPaused) != 1 {
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
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == observe.FindingHeadMissing }) {
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
	if d.Mode != nodepool.Shadow || d.Why.Code != addon.Frozen {
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
	clear(w.c.records[key].memory.drains)
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) != 0 {
		t.Errorf("drained %v before the operator saw generation %d", w.ray.drained(), w.kube.cluster.Generation)
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
	for range 20 {
		w.after(10 * time.Second)
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
	if w.kube.emitted(addon.ReasonGroupFailing) != 0 {
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

func TestAScaleDownOfOurOwnIsNoSuddenDrop(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 5, 0, 9))
	w.after(61 * time.Second) // drained
	w.operate()
	w.after(100 * time.Millisecond) // named, and deleted before the next reading
	w.operate()
	d := w.after(100 * time.Millisecond)
	if w.kube.emitted(addon.ReasonReductionsPaused) != 0 || d.Paused != "" {
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

func TestNoNodeIsDrainedWhilePatchesFail(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 6, 0, 6))
	for i := 1; i < 6; i++ {
		w.busy(w.pod(i))
	}
	w.kube.applyErr = errors.New("403 forbidden")
	w.after(61 * time.Second) // the first is drained, and its pod cannot be named
	w.after(time.Second)
	for i := 1; i < 6; i++ {
		n := w.node(w.pod(i))
		n.Status, n.Idle, n.Available = raydemand.Idle, 0, n.Total.Clone()
	}
	before := w.kube.freshReads
	for range 1800 {
		w.after(100 * time.Millisecond)
	}
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

func TestAFailedPatchThatIsNoLongerWantedHoldsNothingBack(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 6))
	w.want(2, gpu(1))
	w.kube.nextErr = errors.New("internal error")
	w.cycle()
	w.want(0, nil)
	w.after(61 * time.Second)
	w.after(time.Second)
	if len(w.ray.drains) != 1 {
		t.Errorf("drained %v, want the idle worker: nothing is left to patch", w.ray.drained())
	}
}

func TestASecondLookThatFailsIsLoggedOnceAndRepeatedWithPauses(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 6))
	w.kube.freshErr = errors.New("the server is overloaded")
	w.pass(61 * time.Second)
	var d *addon.Decision
	for range 600 {
		d = w.after(100 * time.Millisecond)
	}
	w.nothingWritten("no fresh list could be read")
	if w.kube.freshReads > 8 {
		t.Errorf("%d fresh lists in a minute, want pauses that grow to 30 s", w.kube.freshReads)
	}
	if w.kube.emitted(addon.ReasonReductionsPaused) != 1 || d.Paused != "reading the RayCluster again before a reduction failed: the server is overloaded" {
		t.Errorf("events %v and pause %q, want the failure reported once", w.kube.events, d.Paused)
	}
	w.kube.freshErr = nil
	w.after(31 * time.Second)
	if len(w.ray.drains) != 1 {
		t.Errorf("drained %v, want the idle worker once lists can be read", w.ray.drained())
	}
}

func TestReportsThatFailPushNoChangeOutOfTheLatestOnes(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	w.ray.reportErr = errors.New("unimplemented")
	w.cycle()
	var d *addon.Decision
	for range 60 {
		d = w.after(5 * time.Second)
	}
	if len(d.Recent) != 1 || d.Recent[0].Kind != addon.ActionPatch {
		t.Errorf("latest actions = %+v, want the patch alone", d.Recent)
	}
	if len(d.Actions) != 1 || d.Actions[0].Kind != addon.ActionReport {
		t.Errorf("this cycle's actions = %+v, want the failed report", d.Actions)
	}
}
