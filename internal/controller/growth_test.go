package controller

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestPendingDemandIsPatchedOnceAndNotCountedTwiceWhilePodsComeUp(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(2, gpu(1))
	w.cycle()
	if got := w.lastChange(); got.Replicas != 2 || got.From != 0 || got.WorkersToDelete != nil {
		t.Errorf("target = %+v, want replicas 0 → 2 without names", got)
	}
	// Asked for and not created; created and not joined; joined while the raylet that waits has not reported yet.
	w.after(100 * time.Millisecond)
	w.operate()
	w.after(100 * time.Millisecond)
	w.joinAll()
	w.after(100 * time.Millisecond)
	w.nothingWritten("two pods for two requests are on their way or idle")
}

func TestReplicasNeverLeaveTheirLimits(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 1, 3))
	w.busy(w.pod(0))
	w.after(2 * time.Second)
	w.want(50, gpu(1))
	w.after(2 * time.Second)
	w.patchedTo(3, "the maximum")
	d := w.after(100 * time.Millisecond)
	w.nothingWritten("the group is at its maximum")
	if len(d.Plan.InfeasibleRequests) != 1 || d.Plan.InfeasibleRequests[0].Count != 48 {
		t.Errorf("unmet = %+v, want 48 requests", d.Plan.InfeasibleRequests)
	}
	w.emitted(addon.ReasonCapped, 1, "it begins once")
}

func TestOnePodOfAGroupWithoutAKnownNodeIsOnItsWay(t *testing.T) {
	w := newWorld(t, Config{}, tried("gpu"))
	w.want(50, gpu(1))
	w.after(2 * time.Second)
	if got := w.lastChange(); got.Replicas != 1 || w.kube.emitted(addon.ReasonTrying) != 1 || w.kube.emitted(addon.ReasonCapped) != 0 {
		t.Errorf("target %+v, events %v, want 1 pod and the Event Trying once", got, w.kube.events)
	}
	w.operate()
	w.seconds(60)
	w.lastNothing("its pod is on its way")
}

func TestThousandsOfUnservedDemandsAreSummarized(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 3))
	for i := range 3000 {
		w.ray.demand.Requests = append(w.ray.demand.Requests, raydemand.Request{
			Bundle: raydemand.Bundle{fmt.Sprintf("nobody-has-%d", i): raydemand.Whole(1)}, Count: 1})
	}
	w.seconds(5)
	if got := w.kube.emitted(addon.ReasonImpossible); got != maxUnmet+1 {
		t.Errorf("%d Events, want the first %d demands and one that counts the others", got, maxUnmet)
	}
}

func TestACycleThatChangesNothingWritesNothing(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 2, 4))
	w.cycles(5, 200*time.Millisecond)
	w.nothingWritten("nothing is asked for and the group is at its minimum")
	if w.kube.freshReads != 0 || len(w.kube.events) != 0 {
		t.Errorf("%d fresh reads and events %v, want none", w.kube.freshReads, w.kube.events)
	}
}

func TestAPatchThatFailsIsRetriedWithPauses(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.want(1, gpu(1))
	for range 2 {
		w.kube.nextErr = errors.New("forbidden")
		if d := w.after(time.Second); d.Err == "" {
			t.Error("the error is not reported")
		}
	}
	if d := w.after(100 * time.Millisecond); d.Unwritten != "forbidden" {
		t.Errorf("while the next try is awaited it is reported as %q", d.Unwritten)
	}
	w.nothingWritten("the pause after an error is not over")
	w.emitted(addon.ReasonPatchFailed, 1, "it begins once")
	d := w.after(time.Second)
	if got := w.lastChange(); got.Replicas != 1 || d.Unwritten != "" {
		t.Errorf("target = %+v, want replicas 1, and nothing unwritten: %q", got, d.Unwritten)
	}
}

func TestInFlightCapsHoldLaunchesBackInWholeReplicas(t *testing.T) {
	slice := gpuGroup("slice", 0, 0, 8)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{Policy: planner.Policy{MaxInFlight: 5}}, slice)
	w.want(8, gpu(1))
	w.cycle()
	w.patchedTo(2, "four of five allowed pods, since a replica has two")
	w.emitted(addon.ReasonInFlightCap, 1, "it begins once")
	w.after(100 * time.Millisecond)
	w.nothingWritten("the cap is used up")
	w.operate()
	w.joinAll()
	w.after(100 * time.Millisecond)
	w.patchedTo(4, "once the first pods have joined")
}

// While the owners of the RayCluster are read, Ray may start in a pod that is to be named, or somebody may take the
// RayCluster from Heliostat. Both are looked at again.
func TestSlowOwnersMakeNoPatchRestOnAnOldReading(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile     func(*world)
		second, named int
	}{
		"nothing happens":    {func(*world) {}, 1, 1},
		"Ray starts":         {(*world).joinAll, 1, 0},
		"it is no more ours": {func(w *world) { w.kube.cluster.Mode = nodepool.Shadow }, 0, 0},
	} {
		first := gpuGroup("a-first", 0, 0, 4)
		first.Priority = 10
		w := newWorld(t, Config{AllocationTimeout: time.Minute}, first, gpuGroup("b-second", 0, 0, 4))
		w.want(1, gpu(1))
		w.cycle()
		w.lastChange()
		w.operate()
		w.kube.cluster.Workers[0].Unschedulable = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu"
		asked := 0
		w.kube.owners = func() {
			w.now = w.now.Add(1500 * time.Millisecond)
			if asked++; asked == 1 {
				c.meanwhile(w)
			}
		}
		for end := w.now.Add(3 * time.Minute); asked == 0 && w.now.Before(end); {
			w.after(time.Second)
		}
		if got := w.group("b-second").Replicas; got != c.second {
			t.Errorf("%s: the second group has %d replicas, want %d", name, got, c.second)
		}
		if got := len(w.group("a-first").WorkersToDelete); got != c.named {
			t.Errorf("%s: %d pods are named, want %d", name, got, c.named)
		}
	}
}

func TestPodsThatTheOperatorWillNotMakeServeNoDemand(t *testing.T) {
	for name, change := range map[string]func(*nodepool.WorkerGroup){
		"the group is suspended": func(g *nodepool.WorkerGroup) { g.Suspended = true },
		"the group is broken":    func(g *nodepool.WorkerGroup) { g.Broken = true },
		"the group has a gate":   func(g *nodepool.WorkerGroup) { g.ScaleGates = []string{"example.com/gate"} },
	} {
		w := newWorld(t, Config{AllocationTimeout: time.Minute}, gpuGroup("a-first", 0, 0, 4), gpuGroup("b-second", 0, 0, 4))
		w.group("a-first").Replicas = 2
		change(w.group("a-first"))
		w.want(2, gpu(1))
		w.cycle()
		if got := w.lastChange(); got.Group != "b-second" || got.Replicas != 2 {
			t.Errorf("%s: target = %+v, want the other group at 2 at once", name, got)
		}
		w.operate()
		w.joinAll()
		w.cycles(10, 10*time.Second)
		if w.kube.emitted(addon.ReasonGroupFailing) > 0 {
			t.Errorf("%s: events = %v, want no failing group: nothing was tried", name, w.kube.events)
		}
	}
}

func TestARefusedSpecLaunchesNothingAndBreaksNoGroupOff(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: time.Minute}, gpuGroup("gpu", 0, 0, 4))
	w.group("gpu").Replicas, w.kube.cluster.Refused = 1, true
	w.want(2, gpu(1))
	d := w.cycles(10, 10*time.Second)
	w.nothingWritten("the operator refuses the spec")
	if len(d.Plan.InfeasibleRequests) != 1 || d.Plan.InfeasibleRequests[0].Count != 2 || d.Plan.InfeasibleRequests[0].Reason.Code != planner.Closed {
		t.Errorf("unmet = %+v, want both requests, because the group is closed", d.Plan.InfeasibleRequests)
	}
	if w.kube.emitted(addon.ReasonGroupFailing) > 0 {
		t.Errorf("events = %v, want no failing group", w.kube.events)
	}
}

// A spec that promises a GPU which Ray then does not announce would otherwise launch pod after pod up to the maximum.
func TestAGroupWhoseNodesDoNotHaveWhatTheSpecSaysDoesNotGrowForEver(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 50))
	w.want(1, gpu(1))
	for range 20 {
		w.after(3 * time.Second)
		w.operate()
		w.joinAll()
		for i := range w.ray.nodes {
			if n := &w.ray.nodes[i]; !n.Head {
				n.Total, n.Available = raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}, raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}
			}
		}
	}
	if got := len(w.kube.cluster.Workers); got != 1 {
		t.Errorf("%d workers, want the one that showed what the group really has", got)
	}
	d, _ := w.c.Decision(key)
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == observe.FindingShape }) {
		t.Errorf("findings = %+v, want %s", d.Findings, observe.FindingShape)
	}
}

// Two actors of 0.3 are left, one on each card: 1.4 are free in sum, and no card has 0.8.
func TestWhatWaitsBesideCardsThatTakeItInSumAloneIsLaunchedForAfterAWhile(t *testing.T) {
	tenths := func(n int64) raydemand.Bundle {
		return raydemand.Bundle{"GPU": raydemand.Amount(n) * raydemand.One / 10}
	}
	for name, c := range map[string]struct {
		change func(*world) // after nine seconds
		want   int
	}{
		"nothing changes on the node": {func(*world) {}, 1},
		"the node changes":            {func(w *world) { w.node(w.pod(0)).Available = tenths(17) }, 0},
		"the demand is another one":   {func(w *world) { w.want(1, tenths(9)) }, 0},
	} {
		w := newWorld(t, Config{}, nodepool.WorkerGroup{Name: "gpu", Resources: gpu(2), Replicas: 1, Max: 3})
		n := w.node(w.pod(0))
		n.Status, n.Idle, n.Available = raydemand.Running, 0, tenths(14)
		w.want(1, tenths(8))
		w.cycle()
		w.pass(9 * time.Second)
		c.change(w)
		if got := w.cycle().Plan.Launch["gpu"]; got != 0 {
			t.Errorf("%s: launches %d after nine seconds, when Ray may place it yet", name, got)
		}
		if got := w.after(time.Second).Plan.Launch["gpu"]; got != c.want {
			t.Errorf("%s: launches %d after ten seconds, want %d", name, got, c.want)
		}
	}
}

func gang(id string, bundles ...raydemand.Bundle) raydemand.Gang {
	return raydemand.Gang{ID: id, Strategy: raydemand.StrictSpread, Bundles: bundles}
}

// The list of gangs is at most milliseconds old and what nodes have free up to a second: a driver that ends its work
// and asks for a placement group at once must not get a worker more than the group needs.
func TestAGangWaitsForTheReportsOfWorkersThatLookBusy(t *testing.T) {
	for _, free := range []bool{true, false} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 9))
		w.busy(w.pod(0))
		w.after(2 * time.Second)
		w.ray.demand.Gangs = []raydemand.Gang{gang("aa", gpu(1), gpu(1))}
		w.ray.demand.Requests = []raydemand.Request{{Bundle: gpu(1), Count: 2}}
		w.after(100 * time.Millisecond)
		w.patchedTo(4, "three for what is sure, tasks included")
		if free {
			w.idles(w.pod(0))
		}
		w.after(time.Second)
		w.nothingWritten("the reports may still be older than the gang")
		w.after(600 * time.Millisecond)
		if free {
			w.nothingWritten("the worker was free indeed")
		} else if got := w.lastChange(); got.Replicas != 5 {
			t.Errorf("target = %+v, want replicas 5: the worker is busy indeed", got)
		}
	}
}

func TestOneTaskAfterTheOtherDoesNotPutOffDrainsForEver(t *testing.T) {
	cpu := raydemand.Bundle{raydemand.CPU: raydemand.One}
	busy := nodepool.WorkerGroup{Name: "cpu", Resources: cpu, Replicas: 2, Max: 2}
	w := newWorld(t, Config{}, busy, nodepool.WorkerGroup{Name: "gpu", Resources: gpu(1), Replicas: 1, Max: 1})
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.want(30, cpu)
	var took time.Duration
	for ; len(w.ray.drains) == 0 && took < 2*time.Minute; took += time.Second {
		// Every second one worker reports a slot free and the other that it was taken.
		free, taken := w.node(w.pod(int(took/time.Second)%2)), w.node(w.pod(int(took/time.Second+1)%2))
		free.Available, taken.Available = cpu.Clone(), raydemand.Bundle{}
		w.after(time.Second)
	}
	if took >= 2*time.Minute || w.ray.drains[0].Node.Instance != w.pod(2) {
		t.Errorf("after %v drained %v, want the idle GPU worker", took, w.ray.drained())
	}
}

func TestOneGangAfterTheOtherDoesNotPutOffDrainsForEver(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
	w.ray.demand.Gangs = []raydemand.Gang{gang("aa", gpu(64))}
	w.after(time.Second)
	w.pass(2 * time.Minute)
	for i := range 80 {
		w.ray.demand.Gangs = nil
		if i%2 == 1 {
			w.ray.demand.Gangs = []raydemand.Gang{gang(string(rune('a'+i)), gpu(64))}
		}
		w.after(100 * time.Millisecond)
		if i == 40 {
			w.nothingWritten("any of the gangs may have been placed here")
		}
	}
	if len(w.ray.drains) == 0 {
		t.Error("eight seconds of gangs that come and go kept two idle workers")
	}
}
