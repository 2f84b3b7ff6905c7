package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reasonsOf returns the first reason of each group's row.
func reasonsOf(plan Plan) map[string]Reason {
	reasons := map[string]Reason{}
	for _, row := range plan.Groups {
		reasons[row.Name] = row.Reasons[0]
	}
	return reasons
}

func TestDemandThatOnlyACoolingGroupCouldServeIsCoolingDown(t *testing.T) {
	const asked = `, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`
	const cooling = `{"name": "a", "resources": {"GPU": 1}, "coolingSeconds": 150, "closed": "no pod joined Ray within 5m0s"`
	for name, c := range map[string]struct {
		snapshot string
		want     Reason
	}{
		"alone": {`{"groups": [` + cooling + `}]` + asked,
			Reason{Code: CoolingDown, Message: "group a: cooling down for 2m30s: no pod joined Ray within 5m0s"}},
		"beside a full one": {`{"groups": [` + cooling + `}, {"name": "b", "resources": {"GPU": 1}, "maxReplicas": 0}]` + asked,
			Reason{Code: CoolingDown, Message: "group a: cooling down for 2m30s: no pod joined Ray within 5m0s; group b is at its maximum of 0 (has 0)"}},
		"full itself": {`{"groups": [` + cooling + `, "maxReplicas": 0}]` + asked,
			Reason{Code: Capped, Message: "group a: cooling down for 2m30s: no pod joined Ray within 5m0s"}},
		"closed for good": {`{"groups": [{"name": "a", "resources": {"GPU": 1}, "closed": "the group is suspended"}]` + asked,
			Reason{Code: Closed, Message: "group a: closed: the group is suspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, c.snapshot), Policy{})
			if len(plan.InfeasibleRequests) != 1 || len(plan.Launch) > 0 {
				t.Fatalf("launches %v, unmet %+v, want one entry", plan.Launch, plan.InfeasibleRequests)
			}
			if diff := cmp.Diff(c.want, plan.InfeasibleRequests[0].Reason); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReasonsOfEqualGangsAreFoundOnce counts allocations, because time depends on the machine.
func TestReasonsOfEqualGangsAreFoundOnce(t *testing.T) {
	allocations := func(count int) float64 {
		s := plannertest.Fleet(200)
		s.LaunchConfigCheckDisabled = true
		s.Gangs = gangsOf(count, 4)
		for i := range s.Gangs {
			s.Gangs[i].Strategy = raydemand.StrictPack
			for k := range s.Gangs[i].Bundles {
				s.Gangs[i].Bundles[k] = plannertest.Bundle(100, 1, 0)
			}
		}
		return testing.AllocsPerRun(3, func() { Compute(s, Policy{}) })
	}
	const few, many, each = 10, 110, 10
	if more := (allocations(many) - allocations(few)) / (many - few); more > each {
		t.Errorf("%.0f allocations for each gang that is not served, want at most %d", more, each)
	}
}
