package planner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const choosy = `{"groups": [
	{"name": "a", "resources": {"GPU": 1}, "labels": {"zone": "a"}, "maxReplicas": 0},
	{"name": "b", "resources": {"GPU": 1}, "labels": {"zone": "b"}, "maxReplicas": 4},
	{"name": "small", "resources": {"CPU": 4}, "labels": {"zone": "d"}}]`

func TestEveryChoiceOfLabelsIsExplainedInOrder(t *testing.T) {
	s := plannertest.Read(t, choosy+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3, "labelSelectors": [{"zone": "c"}, {"zone": "a"}, {"zone": "b"}, {}]}]}`)
	got := explainDemand(s, s.Requests[0])
	want := []Detail{
		{About: "choice 1 of 4, zone=c", Reason: Reason{Code: model.CodeLabels, Message: "group a: label zone is a, must be c; group b: label zone is b, must be c; " +
			"group small: too small: needs 1 GPU, has 0; label zone is d, must be c"}},
		{About: "choice 2 of 4, zone=a", Reason: Reason{Code: model.CodeAtMax, Message: "group a is at its maximum of 0 (has 0); group b: label zone is b, must be a; " +
			"group small: too small: needs 1 GPU, has 0; label zone is d, must be a"}},
		{About: "choice 3 of 4, zone=b", Reason: Reason{Code: CodeLaunch, Message: "3 are placed on new pods of group b"}},
		{About: "choice 4 of 4, any node", Reason: Reason{Code: model.CodeNotNeeded, Message: "pods of group b could serve it, but none is needed"}},
		{About: "group a", Reason: Reason{Code: model.CodeAtMax, Message: "group a is at its maximum of 0 (has 0)"}},
		{About: "group b", Reason: Reason{Code: CodeLaunch, Message: "launching 3 pods, which serve 3, choice 3 of 4"}},
		{About: "group small", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 1 GPU, has 0"}},
	}
	if diff := cmp.Diff(want, got.Details); diff != "" {
		t.Error(diff)
	}
}

func TestEveryChoiceOfAGangIsExplainedInOrder(t *testing.T) {
	s := plannertest.Read(t, choosy+`, "pendingGangRequests": [{"id": "7f", "strategy": "STRICT_SPREAD", "bundles": [{"TPU": 1}, {"TPU": 1}],
		"fallbackBundles": [[{"GPU": 1}, {"GPU": 1}, {"GPU": 1}, {"GPU": 1}, {"GPU": 1}], [{"GPU": 2}]]}]}`)
	plan := Compute(s, Policy{})
	want := Reason{Code: Capped, Message: "choice 1 of 3: needs 1 TPU; no group has any; " +
		"choice 2 of 3: needs 5 different nodes at once: group a is at its maximum of 0 (has 0); group b can add only 4 pods: its maximum is 4 (has 0); " +
		"group small: too small: needs 1 GPU, has 0; choice 3 of 3: needs 2 GPU; the largest group has 1 (a)"}
	if len(plan.InfeasibleGangRequests) != 1 {
		t.Fatalf("%d gangs are not served, want 1", len(plan.InfeasibleGangRequests))
	}
	if diff := cmp.Diff(want, plan.InfeasibleGangRequests[0].Reason); diff != "" {
		t.Error(diff)
	}
	// The group counts as wanted by a fallback that only it could serve in part.
	if diff := cmp.Diff(Reason{Code: model.CodeNotInFull, Message: "{GPU 1}: it cannot be served in full, so nothing is launched for it; group b can add only 4 pods: its maximum is 4 (has 0)"}, reasonsOf(plan)["b"]); diff != "" {
		t.Error(diff)
	}
	explained, _ := explainGroup(s, "b")
	details := []Detail{
		{About: "size", Reason: Reason{Code: model.CodeNotInFull, Message: "0 pods (min 0, max 4), each {GPU 1}"}},
		{About: "gang 7f, choice 1 of 3: 2 × {TPU 1}", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 1 TPU, has 0"}},
		{About: "gang 7f, choice 2 of 3: 5 × {GPU 1}", Reason: Reason{Code: model.CodeNotInFull, Message: "it cannot be served in full, so nothing is launched for it; group b can add only 4 pods: its maximum is 4 (has 0)"}},
		{About: "gang 7f, choice 3 of 3: 1 × {GPU 2}", Reason: Reason{Code: model.CodeTooSmall, Message: "too small: needs 2 GPU, has 1"}},
	}
	if diff := cmp.Diff(details, explained.Details); diff != "" {
		t.Error(diff)
	}
}

func TestADemandIsPlannedAsIfSoManyWaitedAsItCounts(t *testing.T) {
	s := plannertest.Read(t, choosy+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}, {"resources": {"GPU": 1}, "count": 1, "labelSelectors": [{"zone": "b"}]}]}`)
	for count, want := range map[int64]string{
		1: "4 asked, 4 are placed on pods launched now",
		4: "4 asked, 4 are placed on pods launched now",
		6: "4 in the snapshot; with 6: 6 asked, 4 are placed on pods launched now, 2 are capped: ",
	} {
		got := explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: count})
		if !strings.HasPrefix(got.Message, want) {
			t.Errorf("asked for %d: %s, want it to begin with %s", count, got.Message, want)
		}
	}
}

func TestADemandCountsIdenticalGangs(t *testing.T) {
	s := plannertest.Read(t, choosy+`, "pendingGangRequests": [{"id": "7f", "strategy": "PACK", "bundles": [{"GPU": 1}, {"GPU": 1}, {"CPU": 4}]},
		{"id": "8a", "strategy": "STRICT_PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]}], "requestResources": [{"resources": {"GPU": 1}, "count": 2}]}`)
	details := explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}}).Details
	want := []Detail{
		{About: "gang 8a", Reason: Reason{Code: Impossible, Message: "its bundles ask for this, in addition to the tasks; 1 asked, 1 is impossible: all bundles on one node: needs 2 GPU; the largest group has 1 (a)"}},
		{About: "gang 7f", Reason: Reason{Code: model.DispositionLaunching, Message: "its bundles ask for this, in addition to the tasks; 1 asked, 1 is placed on pods launched now"}},
		{About: "request_resources", Reason: Reason{Code: model.DispositionLaunching, Message: "2 asked, 2 are placed on pods launched now"}},
	}
	if diff := cmp.Diff(want, details[len(details)-3:]); diff != "" {
		t.Error(diff)
	}
}

func TestAMinimumAboveTheMaximumIsAFinding(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "minReplicas": 3, "maxReplicas": 2}, {"name": "b", "resources": {"GPU": 1}}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`), Policy{})
	want := []raydemand.Finding{{Code: model.FindingMinAboveMax, Severity: raydemand.Error, Object: "group a", Field: "minReplicas", Seen: "3",
		Why: "above maxReplicas 2; the operator stops reconciling the whole cluster, so the plan leaves the group as it is", Fix: "lower minReplicas or raise maxReplicas"}}
	if diff := cmp.Diff(want, plan.Findings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"b": 1}, plan.Launch); diff != "" {
		t.Errorf("launches: %s", diff)
	}
}
