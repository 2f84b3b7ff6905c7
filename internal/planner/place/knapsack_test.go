package place

import (
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAKnapsackIsBoundedHoweverOftenABundleFits(t *testing.T) {
	k := knapsack{kinds: []kind{
		{item: 0, need: []Term{{Resource: 0, Amount: 3}, {Resource: 1, Amount: 1}}, limit: MaxCount, value: 5},
		{item: 1, need: []Term{{Resource: 0, Amount: 2}, {Resource: 1, Amount: 7}}, limit: MaxCount, value: 4},
	}}
	const nodes = 100
	if worth := k.solve(Vector{raydemand.Amount(1 << 50), raydemand.Amount(1 << 50)}, nodes); worth <= 0 {
		t.Errorf("the filling is worth %v", worth)
	}
	if k.looks < -nodes {
		t.Errorf("%d looks left: want a search that was cut short at its bound", k.looks)
	}
}
