package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestAGangThatIsNotServedChangesNothingThatIsLaunched plans once more without the unserved gangs.
func TestAGangThatIsNotServedChangesNothingThatIsLaunched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		plan := Compute(s, Policy{})
		if len(plan.InfeasibleGangRequests) == 0 {
			return
		}
		without := s
		without.Gangs = slices.DeleteFunc(slices.Clone(s.Gangs), func(g raydemand.Gang) bool {
			return slices.ContainsFunc(plan.InfeasibleGangRequests, func(u UnmetGang) bool { return u.ID == g.ID })
		})
		if diff := cmp.Diff(Compute(without, Policy{}).Launch, plan.Launch); diff != "" {
			t.Errorf("what is launched (-without the gangs that are not served +with them): %s\n%s", diff, compact(s))
		}
	})
}

func TestAGangIsExplainedByWhatItAsksFor(t *testing.T) {
	s := readText(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 2}],
		"pendingGangRequests": [{"id": "77", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}]}]}`)
	for demand, want := range map[string]string{
		`{"strategy": "STRICT_SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}]}`: "gang 77: launching: 1 asked, 1 is placed on pods launched now",
		`{"strategy": "STRICT_PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]}`: "gang: impossible: no gang in the snapshot is waiting for it; if one were: 1 asked, 1 is impossible: " +
			"all bundles on one node: needs 2 GPU; the largest group has 1 (a)",
	} {
		q, err := snapshotfile.ReadDemand(demand, "--demand")
		if err != nil {
			t.Fatal(err)
		}
		e, err := Explain(s, Policy{}, q)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.About + ": " + e.Code + ": " + e.Message; got != want {
			t.Errorf("%s is explained as\n%s, want\n%s", demand, got, want)
		}
	}
	if _, err := snapshotfile.ReadDemand(`{"strategy": "LOOSE", "bundles": [{"GPU": 1}]}`, "--demand"); err == nil || !strings.Contains(err.Error(), "PACK, SPREAD") {
		t.Errorf("the error is %v", err)
	}
	if q, err := snapshotfile.ReadDemand(`{"GPU": 1}`, "--demand"); err != nil || q.Demand == nil || q.AskedGang != nil {
		t.Errorf("amounts alone are read as %+v, %v", q, err)
	}
}

// TestAnEqualGangMoreCostsNextToNothing counts allocations, because time depends on the machine. What remains is one
// line per gang in the report.
func TestAnEqualGangMoreCostsNextToNothing(t *testing.T) {
	for _, strategy := range []raydemand.Strategy{raydemand.Pack, raydemand.Spread, raydemand.StrictPack, raydemand.StrictSpread} {
		allocations := func(count int) float64 {
			s := halfFull(fleetOf(20), 200)
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
	s := readText(t, `{"launchConfigCheckDisabled": true, "groups": [{"name": "g", "resources": {"GPU": 4}, "maxReplicas": 3}],
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
