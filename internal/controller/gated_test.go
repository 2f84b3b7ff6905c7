package controller

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
