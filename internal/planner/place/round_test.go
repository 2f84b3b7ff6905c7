package place

import (
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestTheBudgetOfWorkCountsTheNodesThatThePlanItselfLaunches(t *testing.T) {
	s := plannertest.Fleet(10)
	s.Requests = plannertest.RandomShapes(200, 10)
	p := newSearch(NewFleet(&s), &s, model.Policy{})
	out := p.round(make([]int64, len(p.Groups)), order{how: fullest})
	ledgerLooks := len(p.Requests) * out.classes
	if out.classes < 2*len(p.Groups) {
		t.Fatalf("%d kinds of nodes are launched, too few for this test", out.classes)
	}
	if n := p.trials(&out); n <= minTrials || n >= maxTrials || n*ledgerLooks > maxWork {
		t.Errorf("%d trials at %d looks each, the budget is %d", n, ledgerLooks, maxWork)
	}
}
