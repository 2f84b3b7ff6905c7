package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
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
