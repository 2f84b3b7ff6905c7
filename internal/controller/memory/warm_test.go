package memory

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestAForecastCountsForItsTimeAndWithABudgetAlone(t *testing.T) {
	m, v, s := New(), viewOf(0), settings()
	s.ForecastMode = capacity.ForecastAct
	v.Cluster.Policy = &capacity.Written{Source: "CapacityPolicy warm",
		Policy: capacity.Policy{Budget: &capacity.Budget{PerDay: 100}}}
	asked, forecasts := planned(), 0
	asked.Forecast = func(time.Time) []planner.WarmEntry {
		forecasts++
		return []planner.WarmEntry{{Name: "forecast", Group: "gpu", Count: 2}}
	}
	decide := func() *planner.Warm {
		m.Remember(&v, s)
		i, err := m.Decide(v, s, asked)
		if err != nil {
			t.Fatal(err)
		}
		return i.Snapshot.Warm
	}
	for range 3 {
		if warm := decide(); warm == nil || len(warm.Keep) != 1 || *warm.SpentToday != 0 || *warm.BudgetPerDay != 100 {
			t.Fatalf("warm capacity is %+v, want what the forecast keeps, within the budget", warm)
		}
		v = later(v, 14*time.Second)
	}
	if decide(); forecasts != 2 {
		t.Errorf("%d forecasts in 42 s, want 2", forecasts)
	}
	v.Cluster.Policy = &capacity.Written{Source: "CapacityPolicy warm"}
	if warm := decide(); warm != nil {
		t.Errorf("without a budget, %+v is kept", warm)
	}
}

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
