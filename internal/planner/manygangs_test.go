package planner

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestOfVeryManyDifferentGangsTheRestHasItsTurnLater(t *testing.T) {
	s := plannertest.Fleet(20)
	s.LaunchConfigCheckDisabled = true
	s.Gangs = differentGangs(1000 + 50)
	plan := Compute(s, Policy{})
	if got := len(plan.InfeasibleGangRequests); got != 50 {
		t.Fatalf("%d gangs are not served, want 50", got)
	}
	if got := plan.InfeasibleGangRequests[0].Reason; got.Code != model.TooMany || !strings.Contains(got.Message, "bundles of gangs than the 1000") {
		t.Errorf("the reason is %v", got)
	}
	served := map[string]bool{}
	for _, u := range plan.InfeasibleGangRequests {
		served[u.ID] = true
	}
	var rest []raydemand.Gang
	for _, g := range s.Gangs {
		if served[g.ID] {
			rest = append(rest, g)
		}
	}
	s.Gangs = rest
	if plan := Compute(s, Policy{}); len(plan.InfeasibleGangRequests) > 0 {
		t.Errorf("%d gangs are not served when they are alone", len(plan.InfeasibleGangRequests))
	}
}

func TestABundleIsFoundInTheChoicesOfGangsAndInTheirSum(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"GPU": 4}, "maxReplicas": 9}], "pendingGangRequests": [
		{"id": "own", "strategy": "PACK", "bundles": [{"GPU": 2}, {"GPU": 2}]},
		{"id": "later", "strategy": "PACK", "bundles": [{"GPU": 4}], "fallbackBundles": [[{"GPU": 1}, {"GPU": 2}]]},
		{"id": "sum", "strategy": "STRICT_PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]},
		{"id": "other", "strategy": "PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]}]}`)
	got := map[string]string{}
	for _, d := range explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{"GPU": raydemand.Whole(2)}, Count: 1}).Details {
		if id, gang := strings.CutPrefix(d.About, "gang "); gang {
			got[id] = strings.Split(d.Message, ",")[0]
		}
	}
	want := map[string]string{
		"own":   "its bundles ask for this",
		"later": "its bundles ask for this",
		"sum":   "its bundles ask for this",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestANameInOtherCaseAndAQuotedAmountAreHintedAt(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 9}],
		"pendingRequests": [{"resources": {"gpu": 1}, "count": 1}]}`), Policy{})
	if got, want := plan.InfeasibleRequests[0].Reason.Message, "needs 1 gpu; no group has any; did you mean GPU? Resource names are case-sensitive"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
	_, err := snapshotfile.ReadRequest(`{"CPU": "4"}`, "--demand")
	if err == nil || !strings.HasSuffix(err.Error(), "to four decimal places, without quotes") {
		t.Errorf("the error is %v", err)
	}
}

func TestAGangIsExplainedByWhatItAsksFor(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "maxReplicas": 2}],
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
		e, err := Explain(nil, s, Policy{}, q)
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
