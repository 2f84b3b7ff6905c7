package planner

import "testing"

func TestTheBudgetOfWorkCountsTheNodesThatThePlanItselfLaunches(t *testing.T) {
	s := wideFleet(10)
	s.Requests = randomShapes(200, 10)
	p := newPlanning(newRoster(&s), &s, Policy{})
	out := p.round(make([]int64, len(p.groups)), fullest)
	ledgerLooks := len(p.requests) * out.lots
	if out.lots < 2*len(p.groups) {
		t.Fatalf("%d kinds of nodes are launched, too few for this test", out.lots)
	}
	if n := p.trials(&out); n <= minTrials || n >= maxTrials || n*ledgerLooks > maxWork {
		t.Errorf("%d trials at %d looks each, the budget is %d", n, ledgerLooks, maxWork)
	}
}
