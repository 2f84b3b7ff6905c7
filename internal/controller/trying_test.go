package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
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
