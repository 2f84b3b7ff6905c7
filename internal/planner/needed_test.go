package planner

import (
	"maps"
	"slices"
	"testing"

	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// errorer is a *testing.T or a *rapid.T.
type errorer interface {
	Helper()
	Errorf(format string, args ...any)
}

// everyReplicaIsNeeded fails if a plan without one of its launched replicas would serve as much and be complete.
func everyReplicaIsNeeded(t errorer, s Snapshot, policy Policy) {
	t.Helper()
	plan := Compute(s, policy)
	hosts := map[string]int{}
	for i := range s.Groups {
		hosts[s.Groups[i].Name] = s.Groups[i].NumOfHosts
	}
	for _, name := range slices.Sorted(maps.Keys(plan.Launch)) {
		less := plan
		less.Launch, less.Terminate = maps.Clone(plan.Launch), nil
		less.Launch[name] -= hosts[name]
		without := applied(s, less, 0)
		if again := Compute(without, policy); len(again.Launch) == 0 && unmet(again) <= unmet(plan) && leavesNoMore(without, s, policy) {
			t.Errorf("launches %v, and one replica of %s less serves as much\n%s\n%s", plan.Launch, name, plannertest.Compact(policy), plannertest.Compact(s))
		}
	}
}

// leavesNoMore reports whether the requests that a plan of s leaves unserved ask for as little as those of a plan of
// other. The number of requests does not say so: of requests for {CPU: 1, GPU: 1} and for {GPU: 1}, a plan can serve two
// of the first kind, or one of each kind. The objective prefers the former.
func leavesNoMore(s, other Snapshot, policy Policy) bool {
	return place.CompareNearly(unservedAmount(s, policy), unservedAmount(other, policy)) <= 0
}

// unservedAmount is what a plan's unserved requests ask for, by the weights of the objective.
func unservedAmount(s Snapshot, policy Policy) (sum float64) {
	p, _, out := place.Decide(nil, &s, policy)
	for i, n := range out.Unserved {
		sum += float64(n) * p.Needed(p.Requests[i])
	}
	return sum
}

// TestAReplicaIsNeededIfLargerRequestsAreServed keeps a drawn case: as many requests are served without g1, but smaller
// ones.
func TestAReplicaIsNeededIfLargerRequestsAreServed(t *testing.T) {
	s, policy := plannertest.Read(t, `{"idleTimeoutSeconds": 60,
		"groups": [{"name": "g0", "resources": {"CPU": 4, "GPU": 1}, "maxReplicas": 3}, {"name": "g1", "resources": {"CPU": 4}, "maxReplicas": 1}],
		"pendingRequests": [{"resources": {"CPU": 1, "GPU": 1}, "count": 3}, {"resources": {"GPU": 1}, "count": 1}],
		"pendingGangRequests": [{"strategy": "PACK", "bundles": [{"CPU": 1}]}, {"strategy": "PACK", "bundles": [{"GPU": 1}]},
			{"strategy": "PACK", "bundles": [{"CPU": 1}, {"CPU": 1}, {"CPU": 3}, {"CPU": 3}]}]}`), Policy{}
	if plan := Compute(s, policy); plan.Launch["g1"] != 1 {
		t.Errorf("launches %v, want one of g1", plan.Launch)
	}
	everyReplicaIsNeeded(t, s, policy)
}
