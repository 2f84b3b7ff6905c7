package memory

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestWarmCapacityCostsOnlyWhereHeliostatScales(t *testing.T) {
	m, v := New(), viewOf(0)
	budget, price := &capacity.Budget{PerDay: 100}, 4.0
	i := Intent{Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu", Price: &price}}},
		Plan: planner.Plan{Warm: []planner.WarmPlan{{Pods: map[string]int64{"gpu": 2}}}}}
	m.WarmSpent(v.Now, budget)
	m.Conclude(&v, &i, 1)
	if got := m.WarmSpent(v.Now.Add(10*time.Minute), budget); got != 1.5 {
		t.Errorf("two warm workers and a node have cost %v in ten minutes, want 1.5", got)
	}
	v.Mode = nodepool.Shadow
	m.Conclude(&v, &i, 1)
	if got := m.WarmSpent(v.Now.Add(20*time.Minute), budget); got != 1.5 {
		t.Errorf("in shadow mode, it has cost %v, want no more than 1.5", got)
	}
}
