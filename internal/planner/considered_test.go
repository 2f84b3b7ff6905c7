package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// reasonsOf returns the first reason of each group's row.
func reasonsOf(plan Plan) map[string]Reason {
	reasons := map[string]Reason{}
	for _, row := range plan.Groups {
		reasons[row.Name] = row.Reasons[0]
	}
	return reasons
}

func TestEveryGroupThatWasNotTakenSaysWhyWithTheNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot string
		want     map[string]Reason
	}{
		"too small, in the wrong region, at its maximum, cooling down, closed, dearer": {
			`{"groups": [
			  {"name": "cheap", "resources": {"GPU": 2}, "price": 1.1, "labels": {"region": "us"}},
			  {"name": "cooling", "resources": {"GPU": 2}, "price": 1, "labels": {"region": "us"}, "coolingSeconds": 39.5, "closed": "2 pods are unschedulable"},
			  {"name": "dear", "resources": {"GPU": 2}, "price": 3.2, "labels": {"region": "us"}},
			  {"name": "far", "resources": {"GPU": 2}, "price": 1, "labels": {"region": "eu"}},
			  {"name": "full", "resources": {"GPU": 2}, "price": 1, "labels": {"region": "us"}, "maxReplicas": 0},
			  {"name": "shut", "resources": {"GPU": 2}, "price": 1, "labels": {"region": "us"}, "closed": "the group is suspended"},
			  {"name": "small", "resources": {"GPU": 1}, "price": 0.5, "labels": {"region": "us"}},
			  {"name": "unlabelled", "resources": {"GPU": 2}, "price": 1}],
			 "pendingRequests": [{"resources": {"GPU": 2}, "count": 1, "labelSelectors": [{"region": "us"}]}]}`,
			map[string]Reason{
				"cheap":      {Code: CodeLaunch, Message: "launching 1 pod for 1 × {GPU 2} where region=us"},
				"cooling":    {Code: CodeCoolingDown, Message: "cooling down for 40s: 2 pods are unschedulable"},
				"dear":       {Code: model.CodeNotChosen, Message: "{GPU 2} where region=us: group cheap was chosen: price 3.2 > 1.1"},
				"far":        {Code: model.CodeLabels, Message: "{GPU 2} where region=us: label region is eu, must be us"},
				"full":       {Code: model.CodeAtMax, Message: "{GPU 2} where region=us: group full is at its maximum of 0 (has 0)"},
				"shut":       {Code: CodeClosed, Message: "closed: the group is suspended"},
				"small":      {Code: model.CodeTooSmall, Message: "{GPU 2} where region=us: too small: needs 2 GPU, has 1"},
				"unlabelled": {Code: model.CodeLabels, Message: "{GPU 2} where region=us: label region is missing, must be us"},
			},
		},
		"of lower priority": {
			`{"groups": [{"name": "first", "resources": {"GPU": 1}, "priority": 5}, {"name": "second", "resources": {"GPU": 1}, "priority": 1}],
			  "pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`,
			map[string]Reason{
				"first":  {Code: CodeLaunch, Message: "launching 1 pod for 1 × {GPU 1}"},
				"second": {Code: model.CodeNotChosen, Message: "{GPU 1}: group first was chosen: priority 1 < 5"},
			},
		},
		"an accelerator that the work does not need": {
			`{"groups": [{"name": "cpu", "resources": {"CPU": 4}}, {"name": "gpu", "resources": {"CPU": 4, "GPU": 1}}],
			  "pendingRequests": [{"resources": {"CPU": 1}, "count": 4}]}`,
			map[string]Reason{
				"cpu": {Code: CodeLaunch, Message: "launching 1 pod for 4 × {CPU 1}"},
				"gpu": {Code: model.CodeNotChosen, Message: "{CPU 1}: group cpu was chosen: it has no accelerators, and the demand needs none"},
			},
		},
		"recovering from failed launches": {
			`{"groups": [{"name": "a", "resources": {"GPU": 1}, "recoverableScore": 0.25}, {"name": "b", "resources": {"GPU": 1}}],
			  "pendingRequests": [{"resources": {"GPU": 1}, "count": 1}]}`,
			map[string]Reason{
				"a": {Code: model.CodeNotChosen, Message: "{GPU 1}: group b was chosen: it recovers better from failed launches, score 0.25 < 1"},
				"b": {Code: CodeLaunch, Message: "launching 1 pod for 1 × {GPU 1}"},
			},
		},
		"nothing waits": {
			`{"groups": [{"name": "a", "resources": {"GPU": 1}}]}`,
			map[string]Reason{"a": {Code: model.CodeNotNeeded, Message: "no waiting demand needs another pod of this group"}},
		},
		"the minimum decides": {
			`{"groups": [{"name": "a", "resources": {"GPU": 1}, "minReplicas": 2147483647, "replicas": 2147483647}]}`,
			map[string]Reason{"a": {Code: model.CodeNotNeeded, Message: "kept at its minimum of 2147483647; no waiting demand needs more"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reasonsOf(Compute(plannertest.Read(t, c.snapshot), Policy{}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDemandThatOnlyACoolingGroupCouldServeIsCoolingDown(t *testing.T) {
	const asked = `, "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`
	const cooling = `{"name": "a", "resources": {"GPU": 1}, "coolingSeconds": 150, "closed": "no pod joined Ray within 5m0s"`
	for name, c := range map[string]struct {
		snapshot string
		want     Reason
	}{
		"alone": {`{"groups": [` + cooling + `}]` + asked,
			Reason{Code: CoolingDown, Message: "group a: cooling down for 2m30s: no pod joined Ray within 5m0s"}},
		"beside a full one": {`{"groups": [` + cooling + `}, {"name": "b", "resources": {"GPU": 1}, "maxReplicas": 0}]` + asked,
			Reason{Code: CoolingDown, Message: "group a: cooling down for 2m30s: no pod joined Ray within 5m0s; group b is at its maximum of 0 (has 0)"}},
		"full itself": {`{"groups": [` + cooling + `, "maxReplicas": 0}]` + asked,
			Reason{Code: Capped, Message: "group a: cooling down for 2m30s: no pod joined Ray within 5m0s"}},
		"closed for good": {`{"groups": [{"name": "a", "resources": {"GPU": 1}, "closed": "the group is suspended"}]` + asked,
			Reason{Code: Closed, Message: "group a: closed: the group is suspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, c.snapshot), Policy{})
			if len(plan.InfeasibleRequests) != 1 || len(plan.Launch) > 0 {
				t.Fatalf("launches %v, unmet %+v, want one entry", plan.Launch, plan.InfeasibleRequests)
			}
			if diff := cmp.Diff(c.want, plan.InfeasibleRequests[0].Reason); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReasonsOfEqualGangsAreFoundOnce counts allocations, because time depends on the machine.
func TestReasonsOfEqualGangsAreFoundOnce(t *testing.T) {
	allocations := func(count int) float64 {
		s := plannertest.WideFleet(200)
		s.LaunchConfigCheckDisabled = true
		s.Gangs = gangsOf(count, 4)
		for i := range s.Gangs {
			s.Gangs[i].Strategy = raydemand.StrictPack
			for k := range s.Gangs[i].Bundles {
				s.Gangs[i].Bundles[k] = plannertest.Bundle(100, 1, 0)
			}
		}
		return testing.AllocsPerRun(3, func() { Compute(s, Policy{}) })
	}
	const few, many, each = 10, 110, 10
	if more := (allocations(many) - allocations(few)) / (many - few); more > each {
		t.Errorf("%.0f allocations for each gang that is not served, want at most %d", more, each)
	}
}
