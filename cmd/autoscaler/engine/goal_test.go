package engine

import (
	"testing"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestADecisionIsAnotherOneWhenItWantsSomethingElse(t *testing.T) {
	plan := func() *addon.Decision {
		return &addon.Decision{Mode: nodepool.Managed, Plan: planner.Plan{
			Launch: map[string]int{"a": 1}, Groups: []planner.GroupPlan{{Name: "a", Current: 1, Desired: 2}},
			InfeasibleRequests: []planner.UnmetRequest{{Request: raydemand.Request{Count: 2}, Reason: planner.Reason{Code: planner.Capped, Message: "at its maximum"}}},
		}}
	}
	seen := map[goal]string{goalOf(plan()): "the first"}
	for what, change := range map[string]func(*addon.Decision){
		"another mode":             func(d *addon.Decision) { d.Mode = nodepool.Shadow },
		"an error":                 func(d *addon.Decision) { d.Err = "refused" },
		"more to launch":           func(d *addon.Decision) { d.Plan.Launch["a"] = 2 },
		"another group to launch":  func(d *addon.Decision) { d.Plan.Launch = map[string]int{"b": 1} },
		"a group that grows":       func(d *addon.Decision) { d.Plan.Groups[0].Desired = 3 },
		"a group of another name":  func(d *addon.Decision) { d.Plan.Groups[0].Name = "b" },
		"one more unmet":           func(d *addon.Decision) { d.Plan.InfeasibleRequests[0].Count = 3 },
		"unmet for another reason": func(d *addon.Decision) { d.Plan.InfeasibleRequests[0].Reason.Code = planner.Impossible },
	} {
		d := plan()
		change(d)
		if before, known := seen[goalOf(d)]; known {
			t.Errorf("%s is the same as %s", what, before)
		}
		seen[goalOf(d)] = what
	}
	comesUp := plan()
	comesUp.Plan.Groups[0].Current, comesUp.Plan.InfeasibleRequests[0].Reason.Message = 2, "in other words"
	if goalOf(comesUp) != goalOf(plan()) {
		t.Error("pods that come up as they were meant to, and other words, are nothing new")
	}
}
