package memory

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// warm is what is remembered of the capacity that a policy keeps free.
type warm struct {
	// meter adds up what it costs.
	meter capacity.Meter
}

// WarmSpent returns what warm capacity has cost on the day of the budget.
func (m *Memory) WarmSpent(now time.Time, budget *capacity.Budget) float64 {
	return m.warm.meter.Spent(now, budget)
}

// warmWanted returns what the capacity policy of the RayCluster wants free now, with its budget; nil if nothing.
func (m *Memory) warmWanted(v observation.View) *planner.Warm {
	policy := v.Cluster.Policy
	if policy == nil {
		return nil
	}
	spent := m.WarmSpent(v.Now, policy.Budget)
	wanted := planner.WarmOf(policy.Source, policy.At(v.Now))
	if wanted != nil && policy.Budget != nil {
		perDay := policy.Budget.PerDay
		wanted.BudgetPerDay, wanted.SpentToday = &perDay, &spent
	}
	return wanted
}

// warmCost returns what the pods cost per hour that are free for warm capacity alone.
func warmCost(s *planner.Snapshot, p *planner.Plan) float64 {
	perHour := 0.0
	for k := range p.Warm {
		for i := range s.Groups {
			if g := &s.Groups[i]; g.Price != nil {
				perHour += *g.Price * float64(p.Warm[k].Pods[g.Name])
			}
		}
	}
	return perHour
}
