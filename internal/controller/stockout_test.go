package controller

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
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

const insufficient = "NodeClaim g1-w6sh8 event: insufficient capacity, all requested instance types were unavailable"

func refusedBy(message string) func(*nodepool.Worker) {
	return func(p *nodepool.Worker) {
		p.NodeRefused, p.NodePromised, p.ByKarpenter = message, false, true
	}
}

// TestWhenTheNextGroupServes has two equal groups. Pods of the first, which is preferred, find no node.
func TestWhenTheNextGroupServes(t *testing.T) {
	pods := func(set func(*nodepool.Worker)) func(*world) {
		return func(w *world) {
			for i := range w.kube.cluster.Workers {
				set(&w.kube.cluster.Workers[i])
			}
		}
	}
	group := func(set func(*nodepool.WorkerGroup)) func(*world) { return func(w *world) { set(w.group("a-first")) } }
	coming := func(launched, requested int) func(*world) {
		return group(func(g *nodepool.WorkerGroup) {
			g.Incoming = landing.Incoming{Launched: launched, Requested: requested}
		})
	}
	nothing, promised := func(*nodepool.Worker) {}, func(p *nodepool.Worker) { p.NodePromised, p.ByKarpenter = true, true }
	held := func(p *nodepool.Worker) { p.Unschedulable, p.GangHeld = "", "resource gap: 2" }
	const read, minute = nodepool.NodeClaimsRead, time.Minute
	for name, c := range map[string]struct {
		wanted   int64 // 2 unless it is set
		claims   nodepool.NodeClaimsState
		unplaced func(*nodepool.Worker)
		begin    func(*world) // changes more
		then     func(*world) // happens after 11 s
		// from and until are between when the next group serves; without until, it does not within from.
		from, until time.Duration
		second      int // the replicas of the next group; all that are wanted unless it is set
		says        string
		finding     string
	}{
		"a node autoscaler refuses": {unplaced: func(p *nodepool.Worker) { p.NodeRefused = "1 in backoff after failed scale-up" },
			from: 5 * time.Second, until: 10 * time.Second, says: "no node is available for 2 pods"},
		"nobody adds a node": {unplaced: nothing, from: minute, until: minute + 5*time.Second},
		"a node is promised": {unplaced: func(p *nodepool.Worker) { p.NodePromised = true },
			from: 5 * minute, until: 5*minute + 5*time.Second},
		"without Events, only the allocation timeout is proof": {unplaced: nothing, from: 5 * minute, until: 5*minute + 5*time.Second,
			begin: func(w *world) { w.kube.cluster.ProvisionersSeen = false }},
		"the API server refuses the pods": {unplaced: nothing, from: minute, until: 5*minute + 5*time.Second,
			begin: func(w *world) { w.kube.cluster.Workers = nil }},
		"three of four pods have a node": {wanted: 4, from: 5 * time.Second, until: 10 * time.Second, second: 1,
			unplaced: func(p *nodepool.Worker) { p.NodeRefused = "max node group size reached" },
			begin: func(w *world) {
				for i := range w.kube.cluster.Workers[:3] {
					p := &w.kube.cluster.Workers[i]
					p.Unschedulable, p.NodeRefused, p.Node, p.ScheduledAt = "", "", fmt.Sprint("node-", i), w.now
				}
			}},
		"NodeClaims hold all pods, whatever is said of them": {wanted: 8, claims: read, begin: coming(8, 0), from: 4 * minute,
			unplaced: refusedBy("all available instance types exceed limits for nodepool"),
			says:     "Karpenter has launched nodes for 8 of them"},
		"NodeClaims are requested": {claims: read, unplaced: nothing, begin: coming(0, 2), from: 2 * minute},
		"NodeClaims hold five of eight": {wanted: 8, claims: read, begin: coming(5, 0), from: 21 * time.Second, until: 23 * time.Second,
			unplaced: refusedBy("all available instance types exceed limits for nodepool (NodePool=g2)"),
			second:   3, says: "3 pods, for example"},
		"Karpenter refuses in its next round": {claims: read, from: 21 * time.Second, until: 23 * time.Second,
			unplaced: refusedBy("all available instance types exceed limits for nodepool (NodePool=g2)")},
		"Karpenter refuses, and NodeClaims are not read": {claims: nodepool.NodeClaimsForbidden, from: 2 * minute,
			until: 2*minute + 30*time.Second, unplaced: refusedBy("all available instance types exceed limits for nodepool (NodePool=g2)")},
		"the next pool has a NodeClaim after a failed launch": {claims: read, unplaced: refusedBy(insufficient),
			then: coming(2, 0), from: 2 * minute},
		"the next round refuses after a failed launch": {claims: read, unplaced: refusedBy(insufficient),
			from: 12 * time.Second, until: 15 * time.Second, then: pods(func(p *nodepool.Worker) {
				refusedBy("nodepool requirements filtered out all available instance types")(p)
				p.RefusedAfterLaunch = true
			})},
		"silence, and NodeClaims are not read": {claims: nodepool.NodeClaimsForbidden, unplaced: nothing,
			from: 5 * minute, until: 5*minute + 5*time.Second},
		"no NodeClaim keeps a promise": {claims: read, unplaced: promised, from: minute, until: minute + 5*time.Second},
		"the refused pods run": {claims: read, unplaced: refusedBy("no instance type has enough resources"), from: 2 * minute,
			then: pods(func(p *nodepool.Worker) { p.Unschedulable, p.Node, p.ScheduledAt = "", "n", p.CreatedAt })},
		"pods wait for quota": {unplaced: func(p *nodepool.Worker) { p.Unschedulable, p.Gated = "", true },
			from: 15 * minute, finding: observe.FindingGated},
		"pods wait for their gang": {unplaced: held, from: 15 * minute, finding: observe.FindingGangHeld},
		// What a gang scheduler says of a pod does not always show that the gang has no room.
		"pods wait for their gang for long": {unplaced: held, from: 15 * minute, until: 40 * minute},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := cmp.Or(c.wanted, 2)
			w := twoGroups(t, Config{}, wanted, c.unplaced)
			w.kube.cluster.NodeClaims = c.claims
			if c.begin != nil {
				c.begin(w)
			}
			took := time.Duration(0)
			if c.then != nil {
				if took = w.untilServed(11 * time.Second); took <= 11*time.Second {
					t.Fatalf("the next group serves after %v", took)
				}
				c.then(w)
			}
			took += w.untilServed(cmp.Or(c.until, c.from) - took)
			served, second := w.group("b-second").Replicas > 0, cmp.Or(c.second, int(wanted))
			if served != (c.until > 0) || served && (took < c.from || w.group("b-second").Replicas != second) {
				t.Errorf("after %v the next group has %d replicas, want %d between %v and %v", took, w.group("b-second").Replicas, second, c.from, c.until)
			}
			if w.kube.emitted(addon.ReasonGroupFailing) > 0 != served {
				t.Errorf("Events %v", w.kube.events)
			}
			d := w.after(time.Second)
			if got := fmt.Sprint(d.Plan.Groups[0].Reasons, d.Snapshot.Groups[0].Closed); !strings.Contains(got, c.says) {
				t.Errorf("reasons %s, want in them %q", got, c.says)
			}
			if c.finding != "" && !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == c.finding && f.Seen == "2 pods" }) {
				t.Errorf("findings %+v, want that 2 pods wait", d.Findings)
			}
		})
	}
}

func TestAWorkerWhoseNodeIsGoneServesNothing(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("a", 1, 0, 4))
	w.operate()
	w.joinAll()
	w.cycle()
	w.kube.cluster.Workers[0].NodeGone = true
	w.want(1, gpu(1))
	if d := w.after(time.Second); d.Plan.Launch["a"] != 1 {
		t.Errorf("launches %v, want a worker in place of the one on the dead node", d.Plan.Launch)
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

// tried returns a group whose pods no known node can hold.
func tried(name string) nodepool.WorkerGroup {
	g := gpuGroup(name, 0, 0, 8)
	g.Landing = &landing.Answer{State: landing.Trying, Why: "node n1 has nvidia.com/gpu 0 where 1 is needed"}
	return g
}

// TestPodsWithoutQuotaGoByNameAndTheNextGroupGrowsInTheSamePatch has an elastic RayCluster of which Kueue grants two pods
// of five: those stay, whether they have work or not.
func TestPodsWithoutQuotaGoByNameAndTheNextGroupGrowsInTheSamePatch(t *testing.T) {
	preferred := gpuGroup("od", 2, 0, 10)
	preferred.Priority = 1
	w := newWorld(t, Config{}, preferred, gpuGroup("spot", 0, 0, 10))
	w.works(w.pod(0))
	w.group("od").Replicas = 5
	w.operate()
	for i := range w.kube.cluster.Workers {
		p := &w.kube.cluster.Workers[i]
		p.Gated = !p.Running
	}
	w.kube.cluster.Queue = nodepool.Queue{Name: "research", Mark: "label", Elastic: true, Quota: &nodepool.Quota{
		Elastic: true, Admitted: true, Unbounded: "unknown", Granted: map[string]int{"od": 2, "spot": 0},
		Pending: &nodepool.PendingWorkload{Name: "w", Version: "1", Pods: map[string]int{"od": 5, "spot": 0}, Judged: true,
			Message: "couldn't assign flavors to pod set od: insufficient unused quota"}}}
	w.want(4, gpu(1))
	d := w.after(time.Second)
	if i := slices.IndexFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == observe.FindingGated }); i < 0 ||
		!strings.Contains(d.Findings[i].Why, "Kueue: couldn't assign flavors") {
		t.Errorf("findings %+v, want what Kueue says of the pods that wait", d.Findings)
	}
	if len(w.kube.changes) != 1 || len(w.kube.changes[0].Targets) != 2 {
		t.Fatalf("changes %+v, want one patch of both groups", w.kube.changes)
	}
	od, spot := w.kube.changes[0].Targets[0], w.kube.changes[0].Targets[1]
	gated := []string{w.pod(2), w.pod(3), w.pod(4)}
	if len(od.WorkersToDelete) == 0 || od.Replicas != 5-len(od.WorkersToDelete) || spot.Replicas < len(od.WorkersToDelete) ||
		slices.ContainsFunc(od.WorkersToDelete, func(pod string) bool { return !slices.Contains(gated, pod) }) {
		t.Errorf("targets %+v and %+v, want pods without quota named, and as many of the other group", od, spot)
	}
	w.kube.changes, w.kube.cluster.Suspended = nil, true
	if d := w.after(time.Minute); d.Mode != nodepool.Shadow {
		t.Errorf("mode %s while Kueue suspends it", d.Mode)
	}
	w.lastNothing("Kueue holds it back")
}
