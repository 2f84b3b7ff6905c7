package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const noNodes = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu"

// twoGroups prefers the first of two equal groups. Its pods find no node: unplaced says what else is known of them.
func twoGroups(t *testing.T, config Config, wanted int64, unplaced func(*nodepool.Worker)) *world {
	t.Helper()
	first := gpuGroup("a-first", 0, 0, 8)
	first.Priority = 10
	w := newWorld(t, config, first, gpuGroup("b-second", 0, 0, 8))
	w.want(wanted, gpu(1))
	w.cycle()
	if got := w.lastChange(); got.Group != "a-first" || int64(got.Replicas) != wanted {
		t.Fatalf("target = %+v, want %d of the group of higher priority", got, wanted)
	}
	w.operate()
	w.kube.cluster.ProvisionersSeen = true
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Unschedulable = noNodes
		unplaced(&w.kube.cluster.Workers[i])
	}
	return w
}

// untilServed runs a cycle a second until the second group is launched, and returns how long that took.
func (w *world) untilServed(limit time.Duration) time.Duration {
	for took := time.Second; took <= limit; took += time.Second {
		w.after(time.Second)
		if w.group("b-second").Replicas > 0 {
			return took
		}
	}
	return limit + 1
}

func TestTheNextGroupServesSoonAfterProofThatTheFirstIsOutOfStock(t *testing.T) {
	for name, c := range map[string]struct {
		unplaced    func(*nodepool.Worker)
		from, until time.Duration
	}{
		"a node autoscaler refuses": {func(p *nodepool.Worker) { p.NodeRefused = "1 in backoff after failed scale-up" }, 5 * time.Second, 10 * time.Second},
		"nobody adds a node":        {func(*nodepool.Worker) {}, time.Minute, 65 * time.Second},
		"a node is promised":        {func(p *nodepool.Worker) { p.NodePromised = true }, 5 * time.Minute, 5*time.Minute + 5*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := twoGroups(t, Config{}, 2, c.unplaced)
			if took := w.untilServed(c.until); took < c.from || took > c.until {
				t.Fatalf("the second group was launched after %v, want between %v and %v", took, c.from, c.until)
			}
			if got := w.group("b-second").Replicas; got != 2 {
				t.Errorf("the second group has %d replicas, want 2", got)
			}
			if w.kube.emitted(addon.ReasonGroupFailing) != 1 {
				t.Errorf("events = %v, want GroupFailing once", w.kube.events)
			}
		})
	}
}

func TestWithoutEventsOnlyTheAllocationTimeoutIsProof(t *testing.T) {
	w := twoGroups(t, Config{AllocationTimeout: time.Minute}, 1, func(*nodepool.Worker) {})
	w.kube.cluster.ProvisionersSeen = false
	if took := w.untilServed(2 * time.Minute); took < time.Minute {
		t.Errorf("the second group was launched after %v although a node may be on its way unseen", took)
	}
}

func TestACoolingGroupIsReportedWithItsSecondsAndKeepsItsPods(t *testing.T) {
	w := twoGroups(t, Config{}, 2, func(p *nodepool.Worker) { p.NodeRefused = "max node group size reached" })
	w.untilServed(time.Minute)
	w.kube.changes = nil
	d := w.after(10 * time.Second)
	row := d.Plan.Groups[0]
	if reason := row.Reasons[0]; reason.Code != planner.CodeCoolingDown ||
		reason.Message != "cooling down for 4m50s: no node is available for 2 pods, for example llm-a-first-1: max node group size reached" {
		t.Errorf("reason = %+v, want cooling down with the time left and what the node autoscaler said", reason)
	}
	if got := d.Snapshot.Groups[0].CoolingSeconds; got < 280 || got > 295 {
		t.Errorf("%v seconds are left of five minutes, want some ten less", got)
	}
	w.nothingWritten("pods that wait are not taken away before the allocation timeout")
	w.group("b-second").Max, w.group("b-second").Replicas = 0, 0
	w.kube.cluster.Workers = w.kube.cluster.Workers[:2]
	d = w.after(time.Second)
	if len(d.Plan.InfeasibleRequests) != 1 || d.Plan.InfeasibleRequests[0].Reason.Code != planner.CoolingDown {
		t.Errorf("unmet = %+v, want it cooling down when no other group is left", d.Plan.InfeasibleRequests)
	}
}

func TestOnlyPodsWithoutANodeAreServedByTheNextGroup(t *testing.T) {
	starting := 0
	w := twoGroups(t, Config{}, 4, func(p *nodepool.Worker) {
		if starting < 3 {
			starting++
			p.Unschedulable, p.Node = "", fmt.Sprint("node-", starting)
			return
		}
		p.NodeRefused = "max node group size reached"
	})
	for i := range w.kube.cluster.Workers {
		if p := &w.kube.cluster.Workers[i]; p.Node != "" {
			p.ScheduledAt = w.now
		}
	}
	w.untilServed(time.Minute)
	if got := w.group("b-second").Replicas; got != 1 {
		t.Errorf("the second group has %d replicas, want 1: three of the first group's pods have a node and are starting", got)
	}
}

func TestThePreferredGroupIsTakenAgainAfterItHasRecovered(t *testing.T) {
	w := twoGroups(t, Config{}, 1, func(p *nodepool.Worker) { p.NodeRefused = "max node group size reached" })
	w.untilServed(time.Minute)
	w.operate()
	for i := range w.kube.cluster.Workers {
		if p := &w.kube.cluster.Workers[i]; p.Group == "b-second" {
			p.Unschedulable, p.NodeRefused = "", ""
		}
	}
	// The second group's worker joins and works. The stuck pod is withdrawn by the allocation timeout.
	second := slices.IndexFunc(w.kube.cluster.Workers, func(p nodepool.Worker) bool { return p.Group == "b-second" })
	stuck := w.kube.cluster.Workers[0]
	w.kube.cluster.Workers = w.kube.cluster.Workers[second:]
	w.joinAll()
	w.kube.cluster.Workers = append([]nodepool.Worker{stuck}, w.kube.cluster.Workers...)
	w.busy(w.kube.cluster.Workers[1].Pod)
	w.want(0, nil)
	for range 310 {
		w.after(time.Second)
		w.operate()
	}
	if got := w.group("a-first").Replicas; got != 0 {
		t.Fatalf("the first group keeps %d replicas that nobody waits for", got)
	}
	w.want(1, gpu(1))
	d := w.after(time.Second)
	if got := d.Snapshot.Groups[0].RecoverableScore; got == nil || *got < 0.4 || *got > 0.7 {
		t.Errorf("score = %v five minutes after the failure, want about a half", got)
	}
	if d.Plan.Launch["b-second"] != 1 {
		t.Errorf("launches %v while the first group recovers, want the second", d.Plan.Launch)
	}
	w.want(0, nil)
	w.group("b-second").Replicas = 1
	for range 330 {
		w.after(time.Second)
	}
	w.want(1, gpu(1))
	d = w.after(time.Second)
	if d.Plan.Launch["a-first"] != 1 {
		t.Errorf("launches %v eleven minutes after the failure, want the preferred group: %+v", d.Plan.Launch, d.Plan.Groups)
	}
}

func TestThreePodsThatFailBeforeTheyJoinBreakAGroupOff(t *testing.T) {
	first := gpuGroup("a-first", 0, 0, 4)
	first.Priority = 10
	w := newWorld(t, Config{}, first, gpuGroup("b-second", 0, 0, 4))
	w.want(1, gpu(1))
	w.cycle()
	for i := range 3 {
		if w.group("b-second").Replicas != 0 {
			t.Fatalf("the second group was launched after %d failures", i)
		}
		w.operate()
		p := &w.kube.cluster.Workers[0]
		p.Failed, p.FailedWhy = true, "UnexpectedAdmissionError: no healthy devices present"
		w.after(2 * time.Second)
		w.kube.cluster.Workers = nil // the operator deletes it and makes another
	}
	if w.group("b-second").Replicas != 1 {
		t.Errorf("replicas of the second group = %d, want 1", w.group("b-second").Replicas)
	}
	d, _ := w.c.Decision(key)
	if got := d.Snapshot.Groups[0].Closed; !strings.Contains(got, "3 pods failed before they joined Ray: llm-a-first-3: UnexpectedAdmissionError") {
		t.Errorf("closed = %q, want the failures and the last one's words", got)
	}
}

// readCase reads a case of Ray's tests from testdata.
func readCase(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("reading case %s: %v", name, err)
	}
}

// Ray lets at most 10 pods be on their way and grows by its upscaling speed. A patch asks for any number at once; what
// is kept is that something is always launched, and never more than is allowed or waits.
func TestLaunchesKeepToTheCapsOfRaysGrid(t *testing.T) {
	var c struct {
		Grid []struct{ MaxConcurrentLaunches, Allocated, Requested, Running, ExpectNewlyRequested int }
	}
	readCase(t, "launch-rate-grid", &c)
	if len(c.Grid) != 35 {
		t.Fatalf("the case has %d rows, want 35", len(c.Grid))
	}
	for _, row := range c.Grid {
		cpu := raydemand.Bundle{"CPU": raydemand.Whole(1)}
		snapshot := planner.Snapshot{
			Groups: []planner.Group{{Name: "g", NumOfHosts: 1, Max: 5000, Resources: cpu}},
			Demand: raydemand.Demand{Requests: []raydemand.Request{{Bundle: cpu, Count: int64(1000 + row.Requested)}}},
		}
		for i := range row.Running + row.Requested {
			state := planner.Running
			if i < row.Requested {
				state = planner.Pending
			}
			snapshot.Nodes = append(snapshot.Nodes, planner.Node{Group: "g", State: state})
		}
		plan := planner.Compute(snapshot, planner.Policy{MaxInFlight: row.MaxConcurrentLaunches})
		allowed, held := plan.Launch["g"], plan.Groups[0].Held
		want := row.MaxConcurrentLaunches - row.Requested
		if allowed != want || allowed < row.ExpectNewlyRequested || allowed+held != 1000 {
			t.Errorf("%+v: %d are launched and %d held back, want %d of 1000 and at least Ray's %d", row, allowed, held, want, row.ExpectNewlyRequested)
		}
	}
}

func TestConservativeGrowthBeginsWithAtMostFiveAndGetsThere(t *testing.T) {
	var c struct {
		PendingRequests []struct{ Count int64 }
		Expect          struct{ Launch, FirstStepAtMost map[string]int }
	}
	readCase(t, "launch-rate-conservative-first-batch-at-most-5", &c)
	w := newWorld(t, Config{}, gpuGroup("test-group", 0, 0, 10))
	w.kube.cluster.UpscalingMode = "Conservative"
	w.want(c.PendingRequests[0].Count, gpu(1))
	w.cycle()
	if got := w.group("test-group").Replicas; got < 1 || got > c.Expect.FirstStepAtMost["test-group"] {
		t.Errorf("the first step asks for %d, want 1 to %d", got, c.Expect.FirstStepAtMost["test-group"])
	}
	for range 20 {
		w.operate()
		w.joinAll()
		left := c.PendingRequests[0].Count
		for i := range w.ray.nodes {
			if n := &w.ray.nodes[i]; !n.Head && left > 0 {
				w.busy(n.Instance)
				left--
			}
		}
		w.want(left, gpu(1))
		w.after(2 * time.Second)
	}
	if got := w.group("test-group").Replicas; got != c.Expect.Launch["test-group"] {
		t.Errorf("in the end %d are asked for, want %d", got, c.Expect.Launch["test-group"])
	}
}
