package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// A worker that had work before a reading between two cycles showed it must not be drained as if the work were old.
func TestAReadingBetweenCyclesShowsSinceWhenANodeWorks(t *testing.T) {
	m, v := newMemory(), viewOf(1)
	v.Cluster.Workers[0].Going = departure.OfTaint("karpenter.sh/disrupted", "")
	joined(&v)
	m.Remember(&v, settings())
	v = later(v, 2*time.Second)
	v.State.Nodes[1].Status, v.State.Nodes[1].Activity = raydemand.Running, []string{raydemand.ActiveWorkers}
	m.Glance(v.Now, v.State.Nodes, false, "")
	m.Glance(v.Now.Add(time.Second), nil, true, "")
	for used, want := range map[time.Duration]int{time.Second: 0, placedShown - 1: 0, placedShown: 1} {
		if got := m.Departing(later(v, used), time.Minute); len(got) != want {
			t.Errorf("%v after it was shown to work, %d drains, want %d", used, len(got), want)
		}
	}
}
