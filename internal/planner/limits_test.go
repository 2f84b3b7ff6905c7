package planner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// stops lists what a plan stops, by pod, with the reason.
func stops(plan Plan) map[string]string {
	all := map[string]string{}
	for _, stop := range plan.Terminate {
		all[stop.Pod] = stop.Reason
	}
	return all
}

func TestAGroupWhoseLimitsExcludeEachOtherIsLeftAsItIs(t *testing.T) {
	const nodes = `"nodes": [{"pod": "a0", "group": "a", "state": "IDLE", "total": {"CPU": 4}, "idleSeconds": 99, "launchConfigHash": "old"},
			{"pod": "a1", "group": "a", "state": "IDLE", "total": {"CPU": 4}, "idleSeconds": 98, "launchConfigHash": "old"},
			{"pod": "b0", "group": "b", "state": "IDLE", "total": {"CPU": 4}, "idleSeconds": 1, "launchConfigHash": "new"},
			{"pod": "b1", "group": "b", "state": "IDLE", "total": {"CPU": 4}, "idleSeconds": 2, "launchConfigHash": "new"}]`
	for name, c := range map[string]struct {
		snapshot string
		want     map[string]string
	}{
		"the bound on all workers takes others": {`"maxWorkers": 3, "launchConfigCheckDisabled": true,`, map[string]string{"b1": model.StopMaxWorkers}},
		"and none where there are no others":    {`"maxWorkers": 1, "launchConfigCheckDisabled": true,`, map[string]string{"b0": model.StopMaxWorkers, "b1": model.StopMaxWorkers}},
		"its idle and outdated nodes stay":      {`"idleTimeoutSeconds": 5,`, map[string]string{}},
	} {
		for _, closed := range []string{"", `"closed": "suspended", `} {
			t.Run(name+closed, func(t *testing.T) {
				plan := Compute(plannertest.Read(t, `{`+c.snapshot+`"groups": [
					{"name": "a", "resources": {"CPU": 4}, `+closed+`"minReplicas": 3, "maxReplicas": 1, "launchConfigHash": "new"},
					{"name": "b", "resources": {"CPU": 4}, "maxReplicas": 9, "launchConfigHash": "new"}], `+nodes+`}`), Policy{})
				if diff := cmp.Diff(c.want, stops(plan)); diff != "" {
					t.Errorf("stopped (-want +got): %s", diff)
				}
				if len(plan.Launch) > 0 {
					t.Errorf("launches %v", plan.Launch)
				}
			})
		}
	}
}

func TestAReplicaWithAnOutdatedHostGoesWhole(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "g", "resources": {"TPU": 4}, "numOfHosts": 2, "maxReplicas": 9, "launchConfigHash": "new"}],
		"nodes": [{"pod": "a0", "group": "g", "replica": "a", "state": "RUNNING", "total": {"TPU": 4}, "launchConfigHash": "old"},
			{"pod": "a1", "group": "g", "replica": "a", "state": "IDLE", "total": {"TPU": 4}, "launchConfigHash": "new"},
			{"pod": "b0", "group": "g", "replica": "b", "state": "IDLE", "total": {"TPU": 4}, "launchConfigHash": "new"},
			{"pod": "b1", "group": "g", "replica": "b", "state": "IDLE", "total": {"TPU": 4}, "launchConfigHash": "new"}]}`), Policy{})
	if diff := cmp.Diff(map[string]string{"a0": model.StopOutdated, "a1": model.StopOutdated}, stops(plan)); diff != "" {
		t.Errorf("stopped (-want +got): %s", diff)
	}
	const want = "it leaves with host a0 of its replica: its launch configuration old is not the group's new"
	if len(plan.Terminate) == 2 && plan.Terminate[1].Message != want {
		t.Errorf("a1 is stopped because %q, want %q", plan.Terminate[1].Message, want)
	}
}

// TestOfPlansThatCostTheSameTheOneThatLetsIdleNodesGoIsTaken: CPU gangs of no accelerator take nodes without one first, but a node
// whose time is over does not stay for that.
func TestOfPlansThatCostTheSameTheOneThatLetsIdleNodesGoIsTaken(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"launchConfigCheckDisabled": true, "idleTimeoutSeconds": 30, "groups": [
			{"name": "gpu", "resources": {"CPU": 16, "GPU": 4}, "minReplicas": 1, "maxReplicas": 8}, {"name": "cpu", "resources": {"CPU": 4}, "maxReplicas": 6}],
		"nodes": [{"pod": "kept", "group": "gpu", "state": "IDLE", "total": {"CPU": 16, "GPU": 4}, "idleSeconds": 45},
			{"pod": "late", "group": "cpu", "state": "IDLE", "total": {"CPU": 4}, "idleSeconds": 44}],
		"pendingGangRequests": [{"id": "a", "strategy": "SPREAD", "bundles": [{"CPU": 1}, {"CPU": 4, "GPU": 1}]}, {"id": "b", "strategy": "PACK", "bundles": [{"CPU": 4}]}]}`), Policy{})
	if diff := cmp.Diff(map[string]string{"late": model.StopIdle}, stops(plan)); diff != "" {
		t.Errorf("stopped (-want +got): %s", diff)
	}
}

// TestUpscalingModeHoldsLaunchesUpAndForbidsNone lets five pods be on their way at once.
func TestUpscalingModeHoldsLaunchesUpAndForbidsNone(t *testing.T) {
	const group = `{"upscalingMode": "Conservative", "groups": [{"name": "g", "resources": {"GPU": 1}, "maxReplicas": 20}]`
	gang := func(strategy string, n int) string {
		return eachOf(strategy, strings.TrimSuffix(strings.Repeat(`{"GPU": 1},`, n), ","), 1)
	}
	for name, c := range map[string]struct {
		snapshot     string
		launch, held int
	}{
		"a packed gang that is larger goes alone":           {`, "pendingGangRequests": [` + gang("PACK", 8) + `]}`, 8, 0},
		"a spread gang that is larger goes before requests": {`, "pendingGangRequests": [` + gang("STRICT_SPREAD", 8) + `], "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`, 8, 3},
		"one that waits for what is on its way is not overtaken": {`, "nodes": [{"pod": "coming", "group": "g", "state": "PENDING", "available": {"GPU": 0}, "total": {"GPU": 1}}],
			"pendingGangRequests": [` + gang("STRICT_SPREAD", 8) + `], "pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`, 0, 10},
		"request_resources that is larger comes in part": {`, "requestResources": [{"resources": {"GPU": 1}, "count": 8}]}`, 5, 3},
		"and not at all where it cannot be had in full":  {`, "requestResources": [{"resources": {"GPU": 1}, "count": 21}]}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, group+c.snapshot), Policy{})
			if plan.Launch["g"] != c.launch || plan.Groups[0].Held != c.held {
				t.Errorf("launches %d and holds %d back, want %d and %d", plan.Launch["g"], plan.Groups[0].Held, c.launch, c.held)
			}
		})
	}
}

// TestWhatUpscalingModeTakesAwayIsTakenWhole has five pods to launch at most: the gang of four has them, that of three waits, and
// nothing that comes later overtakes it.
func TestWhatUpscalingModeTakesAwayIsTakenWhole(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"upscalingMode": "Conservative", "groups": [{"name": "g", "resources": {"GPU": 1}, "maxReplicas": 99}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 2}],
		"pendingGangRequests": [{"id": "three", "strategy": "PACK", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}]},
			{"id": "four", "strategy": "PACK", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}, {"GPU": 1}]}]}`), Policy{})
	if diff := cmp.Diff(map[string]int{"g": 4}, plan.Launch); diff != "" {
		t.Errorf("launched (-want +got): %s", diff)
	}
	if len(plan.InfeasibleGangRequests) != 1 || len(plan.InfeasibleRequests) != 1 {
		t.Fatalf("%d gangs and %d requests are not served, want one of each", len(plan.InfeasibleGangRequests), len(plan.InfeasibleRequests))
	}
	const limit = "group g has 4 on the way; what comes first waits until more fit under upscalingMode Conservative"
	gang, request := plan.InfeasibleGangRequests[0], plan.InfeasibleRequests[0]
	if gang.ID != "three" || gang.Reason != (Reason{Code: Capped, Message: "needs all 3 bundles at once: " + limit}) {
		t.Errorf("gang %s is not served: %+v", gang.ID, gang.Reason)
	}
	if request.Count != 2 || request.Reason != (Reason{Code: Capped, Message: limit}) {
		t.Errorf("%d requests are not served: %+v", request.Count, request.Reason)
	}
}
