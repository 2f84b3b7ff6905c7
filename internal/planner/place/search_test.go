package place

import "testing"

func TestAProposalThatIsNoFixedPointRanksLast(t *testing.T) {
	dear := contender{out: Outcome{launched: []int64{0}}, verdict: verdict{launchCost: launchCost{costs: []float64{9}}}}
	cheap := contender{out: Outcome{launched: []int64{1}}, verdict: verdict{launchCost: launchCost{costs: []float64{1}}}}
	if cheap.before(&dear) || !dear.before(&cheap) {
		t.Error("launches that are followed by others are better than launches that are not")
	}
}
