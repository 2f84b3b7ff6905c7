package planner

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestWorkHasADeadlineOnlyAboveTheMaximumOfItsGroup(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"groups": [{"name": "a", "resources": {"CPU": 1}, "maxReplicas": 1, "launchConfigHash": "new"}],
		"nodes": [
			{"pod": "a0", "group": "a", "state": "RUNNING", "total": {"CPU": 1}},
			{"pod": "a1", "group": "a", "state": "RUNNING", "total": {"CPU": 1}},
			{"pod": "old", "group": "a", "state": "RUNNING", "total": {"CPU": 1}, "launchConfigHash": "old"},
			{"pod": "idle", "group": "a", "state": "IDLE", "total": {"CPU": 1}, "launchConfigHash": "old"},
			{"pod": "lost", "group": "b", "state": "RUNNING", "total": {"CPU": 1}}]}`), Policy{})
	parting := map[string]int{}
	for _, stop := range plan.Terminate {
		parting[stop.Reason+stop.Parting()]++
	}
	want := map[string]int{
		"max_group; it has work, so it stops by a drain with a deadline": 1,
		"outdated; it has work and stops after the work is done":         2,
		"outdated": 1,
	}
	for text, n := range want {
		if parting[text] != n || len(parting) != len(want) {
			t.Errorf("%q stands %d times, want %d: %v", text, parting[text], n, parting)
		}
	}
}

// The operator does not delete pods of unknown groups, and the loop does not name them, so the sentence says so.
func TestThePodOfARemovedGroupIsLeftToTheUser(t *testing.T) {
	const snapshot = `{"groups": [], "nodes": [{"pod": "lost", "group": "b", "state": "RUNNING", "total": {"CPU": 1}}]`
	plan := Compute(plannertest.Read(t, snapshot+`}`), Policy{})
	if len(plan.Terminate) != 1 || !strings.Contains(plan.Terminate[0].Message, "the operator does not delete its pods") {
		t.Errorf("stops: %+v", plan.Terminate)
	}
	kept := Compute(plannertest.Read(t, snapshot+`, "launchConfigCheckDisabled": true}`), Policy{})
	if len(kept.Terminate) > 0 {
		t.Errorf("on KubeRay it is not stopped: %+v", kept.Terminate)
	}
	for says, p := range map[string]Plan{"should stop, which the operator does not carry out": plan, "does not stop it": kept} {
		if len(p.Findings) != 1 || !strings.HasSuffix(p.Findings[0].Why, says) || !strings.HasPrefix(p.Findings[0].Fix, "delete the pod after its work is done") {
			t.Errorf("findings: %+v", p.Findings)
		}
	}
}
