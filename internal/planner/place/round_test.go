package place

import (
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestTheBudgetOfWorkCountsTheNodesThatThePlanItselfLaunches(t *testing.T) {
	s := plannertest.WideFleet(10)
	s.Requests = plannertest.RandomShapes(200, 10)
	p := newSearch(NewFleet(&s), &s, model.Policy{})
	out := p.round(make([]int64, len(p.Groups)), fullest)
	ledgerLooks := len(p.Requests) * out.classes
	if out.classes < 2*len(p.Groups) {
		t.Fatalf("%d kinds of nodes are launched, too few for this test", out.classes)
	}
	if n := p.trials(&out); n <= minTrials || n >= maxTrials || n*ledgerLooks > maxWork {
		t.Errorf("%d trials at %d looks each, the budget is %d", n, ledgerLooks, maxWork)
	}
}

// TestGangsThatWereNotServedGoFirstOnceMore: with both nodes on their way, the packed gang comes first and would take
// the one that the other gang's label selects.
func TestGangsThatWereNotServedGoFirstOnceMore(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 8, "memory": 68719476736}, "maxReplicas": 1},
		{"name": "b", "resources": {"CPU": 4, "memory": 17179869184}, "labels": {"zone": "a"}, "maxReplicas": 1}],
		"pendingGangRequests": [
		{"id": "easy", "strategy": "STRICT_PACK", "bundles": [{"CPU": 1, "memory": 10737418240}]},
		{"id": "hard", "strategy": "PACK", "bundles": [{"CPU": 1}, {"CPU": 1, "memory": 10737418240}], "bundleLabelSelectors": [{}, {"zone": "a"}]}],
		"requestResources": [{"resources": {"CPU": 3}, "count": 2}]}`)
	p := newSearch(NewFleet(&s), &s, model.Policy{})
	if out := p.round([]int64{1, 1}, fullest); len(out.Gangs) > 0 {
		t.Errorf("%d gangs are not served on two nodes that hold both", len(out.Gangs))
	}
}
