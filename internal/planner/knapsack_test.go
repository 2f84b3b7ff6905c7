package planner

import (
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAKnapsackIsBoundedHoweverOftenABundleFits(t *testing.T) {
	k := knapsack{kinds: []kind{
		{item: 0, need: []term{{resource: 0, amount: 3}, {resource: 1, amount: 1}}, limit: maxCount, value: 5},
		{item: 1, need: []term{{resource: 0, amount: 2}, {resource: 1, amount: 7}}, limit: maxCount, value: 4},
	}}
	const nodes = 100
	if worth := k.solve(vector{raydemand.Amount(1 << 50), raydemand.Amount(1 << 50)}, nodes); worth <= 0 {
		t.Errorf("the filling is worth %v", worth)
	}
	if k.complete || k.looks < -nodes {
		t.Errorf("complete %v with %d looks left: want a search that was cut short at its bound", k.complete, k.looks)
	}
}
