package planner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestEachRequestOverRESTHasItsOwnReason(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"CPU": 2, "GPU": 1}, "maxReplicas": 6}],
		"keptResources": [{"resources": {"gpu": 1}, "count": 1}],
		"ownedRequests": [{"id": "train-7", "owner": "a", "priority": 10, "allOrNothing": true, "requests": [{"resources": {"CPU": 8, "GPU": 1}, "count": 4}]},
		{"id": "wide", "owner": "b", "requests": [{"resources": {"GPU": 1}, "count": 9}]}]}`), Policy{})
	want := map[string]string{
		"{gpu 1}":        "impossible: needs 1 gpu; no group has any",
		"{CPU 8, GPU 1}": "impossible: needs 8 CPU; the largest group has 2",
		"{GPU 1}":        "capped: group gpu is at its maximum of 6",
	}
	for _, unmet := range plan.InfeasibleRequestResources {
		about := Describe(unmet.Request)
		if got := unmet.Reason.Code + ": " + unmet.Reason.Message; want[about] == "" || !strings.HasPrefix(got, want[about]) {
			t.Errorf("%s says %q, want %q", about, got, want[about])
		}
		delete(want, about)
	}
	for about := range want {
		t.Errorf("no reason for %s", about)
	}
}

func TestUnservedBundlesNameTheirRequests(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"CPU": 2, "GPU": 1}, "maxReplicas": 1}],
		"keptResources": [{"resources": {"TPU": 1}, "count": 1}, {"resources": {"FPGA": 1}, "count": 1}],
		"requestResources": [{"resources": {"NPU": 1}, "count": 1}],
		"ownedRequests": [{"id": "first", "owner": "ann", "priority": 10, "requests": [{"resources": {"GPU": 1}, "count": 1}]},
		{"id": "wide", "owner": " ", "requests": [{"resources": {"GPU": 1}, "count": 3}]},
		{"id": "slow", "owner": "cid", "requests": [{"resources": {"GPU": 1}, "count": 1}, {"resources": {"TPU": 1}, "count": 1}]}]}`), Policy{})
	got := map[string]string{}
	for _, unmet := range plan.InfeasibleRequestResources {
		got[Describe(unmet.Request)] = unmet.AskedBy
	}
	want := map[string]string{"{GPU 1}": "requests slow of cid, wide", "{TPU 1}": "the plain request and request slow of cid", "{FPGA 1}": "", "{NPU 1}": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked by (-want +got):\n%s", diff)
	}
}

// Ray serves a call of request_resources as a whole or not at all.
func TestABundleOfACallFromWithinRayNamesTheBundleThatPreventsIt(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"CPU": 2, "GPU": 1}, "maxReplicas": 6}],
		"requestResources": [{"resources": {"GPU": 1}, "count": 1}, {"resources": {"CPU": 8}, "count": 1}]}`), Policy{})
	for _, unmet := range plan.InfeasibleRequestResources {
		want := map[string]string{"{CPU 8}": "needs 8 CPU", "{GPU 1}": "must be served together with {CPU 8} of the same call: needs 8 CPU"}[Describe(unmet.Request)]
		if unmet.Reason.Code != Impossible || !strings.HasPrefix(unmet.Reason.Message, want) {
			t.Errorf("%s says %+v, want %q", Describe(unmet.Request), unmet.Reason, want)
		}
	}
	if len(plan.InfeasibleRequestResources) != 2 {
		t.Errorf("%d entries", len(plan.InfeasibleRequestResources))
	}
}
