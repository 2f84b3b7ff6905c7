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
