package planner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand"
)

const choosy = `{"groups": [
	{"name": "a", "resources": {"GPU": 1}, "labels": {"zone": "a"}, "maxReplicas": 0},
	{"name": "b", "resources": {"GPU": 1}, "labels": {"zone": "b"}, "maxReplicas": 4},
	{"name": "small", "resources": {"CPU": 4}, "labels": {"zone": "d"}}]`

func TestEveryChoiceOfLabelsIsExplainedInOrder(t *testing.T) {
	s := read(t, choosy+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3, "labelSelectors": [{"zone": "c"}, {"zone": "a"}, {"zone": "b"}, {}]}]}`)
	got := explainDemand(s, s.Requests[0])
	want := []Detail{
		{"choice 1 of 4, zone=c", Reason{CodeLabels, "group a: label zone is a, which must be c; group b: label zone is b, which must be c; " +
			"group small: too small: needs 1 GPU, has 0; label zone is d, which must be c"}},
		{"choice 2 of 4, zone=a", Reason{CodeAtMax, "group a is at its maximum of 0 (has 0); group b: label zone is b, which must be a; " +
			"group small: too small: needs 1 GPU, has 0; label zone is d, which must be a"}},
		{"choice 3 of 4, zone=b", Reason{CodeLaunch, "3 of it get places on new pods of group b"}},
		{"choice 4 of 4, any node", Reason{CodeNotNeeded, "pods of group b would do, and none is needed for it"}},
		{"group a", Reason{CodeAtMax, "group a is at its maximum of 0 (has 0)"}},
		{"group b", Reason{CodeLaunch, "3 pods are launched, with places for 3 of it, choice 3 of 4"}},
		{"group small", Reason{CodeTooSmall, "too small: needs 1 GPU, has 0"}},
	}
	if diff := cmp.Diff(want, got.Details); diff != "" {
		t.Error(diff)
	}
}

func TestEveryChoiceOfAGangIsToldInOrder(t *testing.T) {
	s := read(t, choosy+`, "pendingGangRequests": [{"id": "7f", "strategy": "STRICT_SPREAD", "bundles": [{"TPU": 1}, {"TPU": 1}],
		"fallbackBundles": [[{"GPU": 1}, {"GPU": 1}, {"GPU": 1}, {"GPU": 1}, {"GPU": 1}], [{"GPU": 2}]]}]}`)
	plan := Compute(s, Policy{})
	want := Reason{Capped, "choice 1 of 3: needs 1 TPU; no group has any; " +
		"choice 2 of 3: needs 5 different nodes at once: group a is at its maximum of 0 (has 0); group b may have only 4 pods more: its maximum is 4 (has 0); " +
		"group small: too small: needs 1 GPU, has 0; choice 3 of 3: needs 2 GPU; the largest group has 1 (a)"}
	if len(plan.InfeasibleGangRequests) != 1 {
		t.Fatalf("%d gangs are not served, want 1", len(plan.InfeasibleGangRequests))
	}
	if diff := cmp.Diff(want, plan.InfeasibleGangRequests[0].Reason); diff != "" {
		t.Error(diff)
	}
	// A fallback that only it could serve in part speaks for a group.
	if diff := cmp.Diff(Reason{CodeNotInFull, "what waits cannot be had in full, so nothing is launched for it; group b may have only 4 pods more: its maximum is 4 (has 0)"}, reasonsOf(plan)["b"]); diff != "" {
		t.Error(diff)
	}
	explained, _ := explainGroup(s, "b")
	details := []Detail{
		{"size", Reason{CodeNotInFull, "0 pods (min 0, max 4), each {GPU 1}"}},
		{"gang 7f, choice 1 of 3: 2 × {TPU 1}", Reason{CodeTooSmall, "too small: needs 1 TPU, has 0"}},
		{"gang 7f, choice 2 of 3: 5 × {GPU 1}", Reason{CodeNotInFull, "it cannot be had in full, so nothing is launched for it"}},
		{"gang 7f, choice 3 of 3: 1 × {GPU 2}", Reason{CodeTooSmall, "too small: needs 2 GPU, has 1"}},
	}
	if diff := cmp.Diff(details, explained.Details); diff != "" {
		t.Error(diff)
	}
}

func TestADemandIsPlannedAsIfSoManyWaitedAsItCounts(t *testing.T) {
	s := read(t, choosy+`, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}, {"resources": {"GPU": 1}, "count": 1, "labelSelectors": [{"zone": "b"}]}]}`)
	for count, want := range map[int64]string{
		1: "4 asked, 4 get places on pods launched now",
		4: "4 asked, 4 get places on pods launched now",
		6: "4 in the snapshot; if it were 6: 6 asked, 4 get places on pods launched now, 2 are capped: ",
	} {
		got := explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}, Count: count})
		if !strings.HasPrefix(got.Message, want) {
			t.Errorf("asked for %d: %s, want it to begin with %s", count, got.Message, want)
		}
	}
}

func TestADemandTellsOfGangsThatAskForTheSame(t *testing.T) {
	s := read(t, choosy+`, "pendingGangRequests": [{"id": "7f", "strategy": "PACK", "bundles": [{"GPU": 1}, {"GPU": 1}, {"CPU": 4}]},
		{"id": "8a", "strategy": "STRICT_PACK", "bundles": [{"GPU": 1}, {"GPU": 1}]}], "requestResources": [{"resources": {"GPU": 1}, "count": 2}]}`)
	details := explainDemand(s, raydemand.Request{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}}).Details
	want := []Detail{
		{"gang 8a", Reason{Impossible, "2 of its bundles ask for this, beside the tasks; 1 asked, 1 is impossible: all bundles on one node: needs 2 GPU; the largest group has 1 (a)"}},
		{"gang 7f", Reason{FateLaunching, "2 of its bundles ask for this, beside the tasks; 1 asked, 1 gets a place on pods launched now"}},
		{"request_resources", Reason{FateLaunching, "2 asked, 2 get places on pods launched now"}},
	}
	if diff := cmp.Diff(want, details[len(details)-3:]); diff != "" {
		t.Error(diff)
	}
}

func TestAMinimumAboveTheMaximumIsAFinding(t *testing.T) {
	plan := Compute(read(t, `{"groups": [{"name": "a", "resources": {"GPU": 1}, "minReplicas": 3, "maxReplicas": 2}, {"name": "b", "resources": {"GPU": 1}}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`), Policy{})
	want := []raydemand.Finding{{Code: FindingMinAboveMax, Severity: raydemand.Error, Object: "group a", Field: "minReplicas", Seen: "3",
		Why: "above maxReplicas 2, with which the operator stops the whole cluster; the group is left as it is", Fix: "lower minReplicas or raise maxReplicas"}}
	if diff := cmp.Diff(want, plan.Findings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"b": 1}, plan.Launch); diff != "" {
		t.Errorf("launches: %s", diff)
	}
}

func TestMemoryIsToldInOneUnit(t *testing.T) {
	bytes := raydemand.Whole
	for _, c := range []struct {
		need, has int64
		want      string
	}{
		{1_500_000_000, 8 << 30, "needs 1.4 GiB memory, has 8 GiB"},
		{512 << 20, 4 << 30, "needs 0.5 GiB memory, has 4 GiB"},
		{512 << 20, 300 << 20, "needs 512 MiB memory, has 300 MiB"},
		{8<<30 + 1, 8 << 30, "needs 8.000000001 GiB memory, has 8 GiB"},
		{2 << 40, 1 << 40, "needs 2048 GiB memory, has 1024 GiB"},
		{8 << 30, 0, "needs 8 GiB memory, has 0"},
		{100, 7, "needs 100 B memory, has 7 B"},
	} {
		if got := needsHas(raydemand.Memory, bytes(c.need), bytes(c.has)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
