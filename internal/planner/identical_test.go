package planner

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestAnEqualGangMoreCostsNextToNothing counts allocations, because time depends on the machine. What remains is one
// line per gang in the report.
func TestAnEqualGangMoreCostsNextToNothing(t *testing.T) {
	for _, strategy := range []raydemand.Strategy{raydemand.Pack, raydemand.Spread, raydemand.StrictPack, raydemand.StrictSpread} {
		allocations := func(count int) float64 {
			s := halfFull(plannertest.Fleet(20), 200)
			s.LaunchConfigCheckDisabled = true
			s.Gangs = gangsOf(count, 4)
			for i := range s.Gangs {
				s.Gangs[i].Strategy = strategy
			}
			return testing.AllocsPerRun(3, func() { Compute(s, Policy{}) })
		}
		const few, many, each = 100, 500, 60
		if more := (allocations(many) - allocations(few)) / (many - few); more > each {
			t.Errorf("%s: %.0f allocations for each gang, want at most %d", strategy, more, each)
		}
	}
}

// TestEachOfEqualGangsSaysWhatItWaitsFor has room for some of them on an existing node, for some on a pod on its way,
// and for some on a launched one.
func TestEachOfEqualGangsSaysWhatItWaitsFor(t *testing.T) {
	s := plannertest.Read(t, `{"launchConfigCheckDisabled": true, "groups": [{"name": "g", "resources": {"GPU": 4}, "maxReplicas": 3}],
		"nodes": [{"pod": "here", "group": "g", "state": "RUNNING", "total": {"GPU": 4}, "available": {"GPU": 4}}, {"pod": "coming", "group": "g", "state": "PENDING"}],
		"pendingGangRequests": [`+eachOf("PACK", `{"GPU": 1}, {"GPU": 1}`, 7)+`]}`)
	plan := Compute(s, Policy{})
	got := map[string]string{}
	for _, d := range plan.Summary {
		got[d.Gang.ID] = fmt.Sprintf("served %d, waiting %d, launching %d, capped %d", d.Served, d.Waiting, d.Launching, d.Capped)
	}
	const served, waiting, launching, capped = "served 1, waiting 0, launching 0, capped 0", "served 0, waiting 1, launching 0, capped 0",
		"served 0, waiting 0, launching 1, capped 0", "served 0, waiting 0, launching 0, capped 1"
	want := map[string]string{"0": served, "1": served, "2": waiting, "3": waiting, "4": launching, "5": launching, "6": capped}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the gangs (-want +got): %s", diff)
	}
}
