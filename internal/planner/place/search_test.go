package place

import (
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestNoStrategyAloneDoesBetterThanThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawPriced(t)
		p := newSearch(NewFleet(&s), &s, model.Policy{})
		given, out := p.settle(make([]int64, len(p.Groups)))
		plan := p.verdict(given, &out)
		for _, how := range []Strategy{fullest, cheapest} {
			alone := p.complete(make([]int64, len(p.Groups)), p.round(make([]int64, len(p.Groups)), order{how: how}), how)
			if alone.compare(&plan) < 0 {
				t.Errorf("strategy %d launches %v, which is better than %v", how, alone.given, given)
			}
		}
	})
}

func TestAProposalThatIsNoFixedPointRanksLast(t *testing.T) {
	dear := contender{out: Outcome{launched: []int64{0}}, verdict: verdict{launchCost: launchCost{costs: []float64{9}}}}
	cheap := contender{out: Outcome{launched: []int64{1}}, verdict: verdict{launchCost: launchCost{costs: []float64{1}}}}
	if cheap.before(&dear) || !dear.before(&cheap) {
		t.Error("launches that are followed by others are better than launches that are not")
	}
}
