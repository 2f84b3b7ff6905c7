package planner

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// With c in place of a, b would take the room on p0, and c, which is the slowest, would need a new node. How long pods of
// a itself take is unknown.
func TestAGroupWithoutAStartTimeIsComparedBecauseItLeavesOthersSooner(t *testing.T) {
	group := func(name string, most int, seconds float64, cpu int64) Group {
		g := Group{Name: name, Max: most, Resources: raydemand.Bundle{"CPU": raydemand.One},
			Pod: &binpack.Pod{Name: name, Requests: podfit.Quantities{"cpu": raydemand.Whole(cpu)}}}
		if seconds > 0 {
			g.StartSeconds = &seconds
		}
		return g
	}
	s := Snapshot{
		Groups: []Group{group("a", 4, 0, 2), group("quick", 1, 70, 3), group("b", 4, 80, 2), group("c", 5, 240, 3)},
		Places: []binpack.Place{
			{Pool: "p0", Nodes: ptr(int64(1)), Empty: true, Free: podfit.Quantities{"cpu": raydemand.Whole(2), "pods": raydemand.Whole(10)},
				Accepts: []string{"a", "b", "c"}},
			{Pool: "new", New: true, AnySize: true, Free: podfit.Quantities{}, Accepts: []string{"a", "quick", "b", "c"}},
		},
	}
	s.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"CPU": raydemand.One}, Count: 3}}
	plan := Compute(s, s.Policy)
	if plan.Launch["a"] != 1 || plan.Launch["quick"] != 1 || plan.Launch["b"] != 1 {
		t.Errorf("launch %v, want one of a on the existing node, and one each of quick and b", plan.Launch)
	}
	const want = "group a was chosen: all launched pods together are ready sooner than with a pod of group c"
	if why := plan.Groups[2].Reasons[0].Message; !strings.Contains(why, want) {
		t.Errorf("group c: %s, want %s", why, want)
	}
}
