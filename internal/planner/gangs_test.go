package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestAGangThatIsNotServedChangesNothingThatIsLaunched plans once more without the unserved gangs.
func TestAGangThatIsNotServedChangesNothingThatIsLaunched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		plan := Compute(s, Policy{})
		if len(plan.InfeasibleGangRequests) == 0 {
			return
		}
		without := s
		without.Gangs = slices.DeleteFunc(slices.Clone(s.Gangs), func(g raydemand.Gang) bool {
			return slices.ContainsFunc(plan.InfeasibleGangRequests, func(u UnmetGang) bool { return u.ID == g.ID })
		})
		if diff := cmp.Diff(Compute(without, Policy{}).Launch, plan.Launch); diff != "" {
			t.Errorf("what is launched (-without the gangs that are not served +with them): %s\n%s", diff, plannertest.Compact(s))
		}
	})
}

// TestAGangThatIsHarderToPlaceLeavesRoomByItsFallback: with its first choice, the larger gang takes the workers that
// maxWorkers leaves, and neither the other gang nor the request is served.
func TestAGangThatIsHarderToPlaceLeavesRoomByItsFallback(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"maxWorkers": 4, "groups": [{"name": "g0", "resources": {"CPU": 1}, "maxReplicas": 2, "numOfHosts": 2},
		{"name": "g3", "resources": {"CPU": 4, "GPU": 1}, "labels": {"zone": "a"}, "maxReplicas": 1}],
		"nodes": [{"pod": "n0", "group": "g0", "replica": "r0", "state": "RUNNING", "total": {"CPU": 1}, "available": {"CPU": 0}}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}], "pendingGangRequests": [{"id": "small", "strategy": "PACK", "bundles": [{"CPU": 1}], "topologyLabel": "zone"},
		{"id": "large", "strategy": "STRICT_SPREAD", "bundles": [{"CPU": 1}, {"CPU": 1}, {"CPU": 1}], "fallbackBundles": [[{"CPU": 1}]]}]}`), Policy{})
	if diff := cmp.Diff(map[string]int{"g3": 1}, plan.Launch); diff != "" || unmet(plan) > 0 {
		t.Errorf("%d are unmet, launches (-want +got): %s", unmet(plan), diff)
	}
}

func TestOfVeryManyDifferentGangsTheRestHasItsTurnLater(t *testing.T) {
	s := plannertest.Fleet(20)
	s.LaunchConfigCheckDisabled = true
	s.Gangs = differentGangs(200 + 50)
	plan := Compute(s, Policy{})
	if got := len(plan.InfeasibleGangRequests); got != 50 {
		t.Fatalf("%d gangs are not served, want 50", got)
	}
	if got := plan.InfeasibleGangRequests[0].Reason; got.Code != model.TooMany || !strings.Contains(got.Message, "bundles of gangs than the 200") {
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

func TestAGroupSaysWhyAGangFellBack(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"GPU": 4}, "maxReplicas": 1}, {"name": "b", "resources": {"GPU": 2}}],
		"pendingGangRequests": [{"id": "c", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 4}, {"GPU": 4}], "fallbackBundles": [[{"GPU": 2}, {"GPU": 2}]]}]}`)
	e, _ := explainGroup(s, "a")
	want := Detail{About: "gang c, choice 1 of 2: 2 × {GPU 4}", Reason: Reason{Code: model.CodeAtMax, Message: "the gang uses a later choice: group a can add only 1 pod: its maximum is 1 (has 0)"}}
	if !slices.Contains(e.Details, want) {
		t.Errorf("want among them %+v, got %+v", want, e.Details)
	}
}

// TestNoGangFallsBackForARequest: by its second choice the gang would leave the GPUs to the request, and everything
// would be served.
func TestNoGangFallsBackForARequest(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 4, "GPU": 2}, "maxReplicas": 1}], "pendingRequests": [{"resources": {"GPU": 2}, "count": 1}],
		"pendingGangRequests": [{"id": "c", "strategy": "PACK", "bundles": [{"GPU": 2}], "fallbackBundles": [[{"CPU": 4}]]}]}`)
	if plan := Compute(s, Policy{}); len(plan.InfeasibleRequests) != 1 || len(plan.InfeasibleGangRequests) != 0 {
		t.Errorf("requests left: %v, gangs left: %v", plan.InfeasibleRequests, plan.InfeasibleGangRequests)
	}
}

func TestALaunchNamesWhoseRequestsItIsFor(t *testing.T) {
	request := func(id, owner string, gpus int) string {
		return fmt.Sprintf(`{"id": %q, "owner": %q, "requests": [{"resources": {"GPU": 1}, "count": %d}]}`, id, owner, gpus)
	}
	const node = `{"pod": "gpu-0", "group": "gpu", "state": "RUNNING", "total": {"GPU": 1}, "available": {}}`
	for name, test := range map[string]struct{ more, owned, want string }{
		"one owner":   {"", request("train-7", "ann", 2), "launching 2 pods for request train-7 of ann: 2 × {GPU 1}"},
		"two owners":  {"", request("a", "ann", 2) + "," + request("b", "bob", 1), "launching 3 pods for requests a of ann, b of bob: 3 × {GPU 1}"},
		"many owners": {"", request("a", "ann", 1) + "," + request("b", "bob", 1) + "," + request("c", "cid", 1) + "," + request("d", "dan", 1), "for requests a of ann, b of bob, 2 more: 4 × {GPU 1}"},
		"an owner whose request is served already is not named": {`, "nodes": [` + node + `]`, request("a", "ann", 1) + "," + request("b", "bob", 1),
			"launching 1 pod for request b of bob: 1 × {GPU 1}"},
		"an owner whose request is capped is not named": {"", request("a", "ann", 8) + "," + request("b", "bob", 1), "launching 8 pods for request a of ann: 8 × {GPU 1}"},
		"the plain request is named too":                {`, "keptResources": [{"resources": {"GPU": 1}, "count": 1}]`, request("a", "ann", 1), "for request_resources over REST and request a of ann: 2 × {GPU 1}"},
		"the plain request alone":                       {`, "keptResources": [{"resources": {"GPU": 1}, "count": 1}]`, "", "for request_resources over REST 1 × {GPU 1}"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 8}]`+test.more+`, "ownedRequests": [`+test.owned+`]}`), Policy{})
			if got := plan.Groups[0].Reasons[0].Message; !strings.HasSuffix(got, test.want) {
				t.Errorf("got %q, want at its end %q", got, test.want)
			}
		})
	}
}
