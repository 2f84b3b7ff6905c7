package planner

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestAGroupSaysWhyAGangFellBack(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"GPU": 4}, "maxReplicas": 1}, {"name": "b", "resources": {"GPU": 2}}],
		"pendingGangRequests": [{"id": "c", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 4}, {"GPU": 4}], "fallbackBundles": [[{"GPU": 2}, {"GPU": 2}]]}]}`)
	e, _ := explainGroup(s, "a")
	want := Detail{About: "gang c, choice 1 of 2: 2 × {GPU 4}", Reason: Reason{Code: model.CodeAtMax, Message: "the gang uses a later choice: group a can add only 1 pod: its maximum is 1 (has 0)"}}
	if !slices.Contains(e.Details, want) {
		t.Errorf("want among them %+v, got %+v", want, e.Details)
	}
}

// TestNoGangFallsBackForARequest: by its second choice the gang would leave the GPUs to the request, and everything
// would be served.
func TestNoGangFallsBackForARequest(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 4, "GPU": 2}, "maxReplicas": 1}], "pendingRequests": [{"resources": {"GPU": 2}, "count": 1}],
		"pendingGangRequests": [{"id": "c", "strategy": "PACK", "bundles": [{"GPU": 2}], "fallbackBundles": [[{"CPU": 4}]]}]}`)
	if plan := Compute(s, Policy{}); len(plan.InfeasibleRequests) != 1 || len(plan.InfeasibleGangRequests) != 0 {
		t.Errorf("requests left: %v, gangs left: %v", plan.InfeasibleRequests, plan.InfeasibleGangRequests)
	}
}
