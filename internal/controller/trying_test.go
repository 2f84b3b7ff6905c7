package controller

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// tried returns a group whose pods no known node can hold.
func tried(name string) nodepool.WorkerGroup {
	g := gpuGroup(name, 0, 0, 8)
	g.Landing = &landing.Answer{State: landing.Trying, Why: "node n1 has nvidia.com/gpu 0 where 1 is needed"}
	return g
}

// most runs a cycle a second and returns the most replicas that the group had.
func (w *world) most(group string, during time.Duration) (most int) {
	for range int(during / time.Second) {
		w.after(time.Second)
		most = max(most, w.group(group).Replicas)
	}
	return most
}

func TestOnePodOfAGroupWithoutAKnownNodeIsOnItsWay(t *testing.T) {
	w := newWorld(t, Config{}, tried("g"))
	w.want(5, gpu(1))
	w.cycle()
	w.operate()
	if got := w.most("g", time.Minute); got != 1 {
		t.Errorf("%d replicas, want 1 while its pod is on its way", got)
	}
}

func TestATryThatFailsIsRememberedAndTheNextGroupIsTried(t *testing.T) {
	w := newWorld(t, Config{}, tried("a-first"), tried("b-second"))
	w.want(5, gpu(1))
	w.cycle()
	w.operate()
	w.kube.cluster.ProvisionersSeen = true
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Unschedulable, w.kube.cluster.Workers[i].NodeRefused = noNodes, "no node group fits"
	}
	if took := w.untilServed(30 * time.Second); took > 30*time.Second {
		t.Fatal("the second group is not tried")
	}
	d := w.after(time.Second)
	if code := d.Plan.Groups[0].Reasons[0].Code; code != planner.CodeCoolingDown {
		t.Errorf("the first group is %s, want %s", code, planner.CodeCoolingDown)
	}
	w.operate()
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Unschedulable, w.kube.cluster.Workers[i].NodeRefused = noNodes, "no node group fits"
	}
	if a, b := w.most("a-first", 4*time.Minute), w.group("b-second").Replicas; a > 1 || b > 1 {
		t.Errorf("%d and %d replicas while both cool down, want at most 1 of each", a, b)
	}
}

func TestAGroupThatFitsNowhereIsNotLaunchedByServe(t *testing.T) {
	g := tried("g")
	g.Landing.State = landing.Nowhere
	w := newWorld(t, Config{}, g)
	w.want(5, gpu(1))
	d := w.cycle()
	w.nothingWritten("no node can hold a pod")
	if unmet := d.Plan.InfeasibleRequests; len(unmet) != 1 || unmet[0].Reason.Code != planner.Impossible {
		t.Errorf("unmet %+v, want it impossible", unmet)
	}
}

func TestPodsThatWaitForQuotaOrTheirGangAreNoFailureOfTheirGroup(t *testing.T) {
	tests := map[string]func(p *nodepool.Worker){
		observe.FindingGated:    func(p *nodepool.Worker) { p.Unschedulable, p.Gated = "", true },
		observe.FindingGangHeld: func(p *nodepool.Worker) { p.Unschedulable, p.GangHeld = "", "minMember of group: 3" },
	}
	for code, waits := range tests {
		t.Run(code, func(t *testing.T) {
			w := twoGroups(t, Config{}, 2, waits)
			if took := w.untilServed(15 * time.Minute); took <= 15*time.Minute {
				t.Errorf("after %v the next group was launched beside pods that wait", took)
			}
			if got := w.group("a-first").Replicas; got != 2 {
				t.Errorf("the group of the waiting pods has %d replicas, want 2", got)
			}
			d, _ := w.c.Decision(w.kube.cluster.Key)
			at := slices.IndexFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == code })
			if at < 0 || d.Findings[at].Seen != "2 pods" {
				t.Errorf("findings %+v, want that 2 pods wait", d.Findings)
			}
		})
	}
}

// What a gang scheduler says of a pod does not always show that the gang has no room, so it is not believed for ever.
func TestAGangThatIsHeldForLongIsNotWaitedForAlone(t *testing.T) {
	w := twoGroups(t, Config{}, 2, func(p *nodepool.Worker) { p.Unschedulable, p.GangHeld = "", "resource gap: 2" })
	if took := w.untilServed(time.Hour); took > 40*time.Minute {
		t.Errorf("the next group was launched after %v", took)
	}
}

// The operator creates no pods of a group with a gate, so those that replicas asks for are not on their way: the other
// group serves, and the gated one has not failed when the gate is gone.
func TestPodsBehindAScaleGateAreNotExpected(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("a", 0, 0, 4), gpuGroup("b", 0, 0, 4))
	gated := w.group("a")
	gated.Replicas, gated.ScaleGates = 2, []string{"example.com/gate"}
	w.want(2, gpu(1))
	w.after(time.Second)
	if target := w.lastChange(); target.Group != "b" || target.Replicas != 2 {
		t.Fatalf("target %+v, want two workers of b", target)
	}
	for range 600 {
		w.after(time.Second)
	}
	w.group("a").ScaleGates, w.group("a").Replicas, w.kube.changes = nil, 0, nil
	w.want(9, gpu(1))
	w.after(time.Second)
	if len(w.kube.changes) != 1 || w.group("a").Replicas == 0 {
		t.Errorf("changes %+v, want workers of a too", w.kube.changes)
	}
}

// tenths of one.
func tenths(n int64) raydemand.Amount { return raydemand.Amount(n) * raydemand.One / 10 }

func TestWhatWaitsBesideCardsThatTakeItInSumAloneIsLaunchedForAfterAWhile(t *testing.T) {
	// Two actors of 0.3 are left, one on each card: 1.4 are free in sum, and no card has 0.8.
	scattered := func(t *testing.T) *world {
		w := newWorld(t, Config{}, nodepool.WorkerGroup{Name: "gpu", Resources: raydemand.Bundle{"GPU": raydemand.Whole(2)}, Replicas: 1, Max: 3, NumOfHosts: 1})
		n := w.node(w.pod(0))
		n.Status, n.Idle, n.Available = raydemand.Running, 0, raydemand.Bundle{"GPU": tenths(14)}
		return w
	}
	want := func(t *testing.T, w *world, launch int, why string) {
		t.Helper()
		if got := w.cycle().Plan.Launch["gpu"]; got != launch {
			t.Errorf("%s: launches %d, want %d", why, got, launch)
		}
	}
	t.Run("it waits beside a node on which nothing changes", func(t *testing.T) {
		w := scattered(t)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		want(t, w, 0, "Ray may place it yet")
		w.pass(9 * time.Second)
		want(t, w, 0, "too early")
		w.pass(time.Second)
		want(t, w, 1, "after the while")
	})
	t.Run("the node changes", func(t *testing.T) {
		w := scattered(t)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		w.cycle()
		w.pass(9 * time.Second)
		w.node(w.pod(0)).Available["GPU"] = tenths(17)
		w.cycle()
		w.pass(time.Second)
		want(t, w, 0, "the node is another one")
	})
	t.Run("it has just come to a node that was so for long", func(t *testing.T) {
		w := scattered(t)
		w.cycle()
		w.pass(time.Hour)
		w.want(1, raydemand.Bundle{"GPU": tenths(8)})
		want(t, w, 0, "Ray may place it yet")
	})
	t.Run("a gang's bundles wait too", func(t *testing.T) {
		w := scattered(t)
		w.ray.demand.Gangs = []raydemand.Gang{{ID: "a", Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{{"GPU": tenths(8)}}}}
		want(t, w, 0, "Ray may place it yet")
		w.pass(10 * time.Second)
		want(t, w, 1, "after the while")
	})
	t.Run("it waits for something else", func(t *testing.T) {
		w := scattered(t)
		w.ray.demand.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": tenths(8), "licence": raydemand.One}, Count: 1}}
		w.cycle()
		w.pass(10 * time.Second)
		w.ray.demand.Requests = append(w.ray.demand.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": tenths(9)}, Count: 1})
		want(t, w, 0, "nothing is known against 0.9")
	})
}
