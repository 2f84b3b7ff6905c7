package planner

import (
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestANodeThatSaysNothingOfWhatItHasCountsAsItsGroup(t *testing.T) {
	const group = `{"idleTimeoutSeconds": 60, "groups": [{"name": "g", "resources": {"GPU": 1}, "maxReplicas": 1}], "nodes": [{"pod": "a", "group": "g", "idleSeconds": 300, "state": `
	const asked = `}], "pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`
	for state, served := range map[string]int64{`"IDLE"`: 1, `"RUNNING"`: 0, `"IDLE", "total": {}`: 0} {
		plan := Compute(plannertest.Read(t, group+state+asked), Policy{})
		found := len(plan.Findings) == 1 && plan.Findings[0].Code == model.FindingUnreported && plan.Findings[0].Object == "node a"
		if reported := state == `"IDLE", "total": {}`; plan.Summary[0].Served != served || found == reported {
			t.Errorf("%s: %d served, want %d; findings %+v", state, plan.Summary[0].Served, served, plan.Findings)
		}
		if served == 1 && len(plan.Terminate) > 0 {
			t.Errorf("%s: %+v are stopped beside demand for them", state, plan.Terminate)
		}
	}
}
