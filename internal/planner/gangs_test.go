package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestAGangThatIsNotServedChangesNothingThatIsLaunched plans once more without the gangs that were not served.
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

// TestAGangWithoutAPlaceIsNotMissed holds what was launched otherwise beside a gang that could not be had whatever else is placed.
func TestAGangWithoutAPlaceIsNotMissed(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot, gang string
		want           map[string]int
		left           int
	}{
		"a bundle of it fits nowhere": {`"maxWorkers": 2, "head": {"state": "RUNNING", "resources": {"CPU": 4, "memory": 16000000000}},
			"groups": [{"name": "g0", "resources": {"CPU": 1}, "minReplicas": 1, "maxReplicas": 1}, {"name": "g2", "resources": {"CPU": 2, "TPU": 4}, "maxReplicas": 1}],
			"pendingRequests": [{"resources": {"CPU": 0.5}, "count": 7, "labelSelectors": [{"zone": "!a"}]}, {"resources": {"CPU": 3}, "count": 1}]`,
			`{"id": "gang0", "strategy": "PACK", "bundles": [{"CPU": 1}, {"GPU": 1}, {"CPU": 1}]}`, map[string]int{"g0": 1}, 1},
		"nothing has what it needs": {`"groups": [{"name": "g1", "resources": {"CPU": 1}, "labels": {"zone": "a"}, "maxReplicas": 1},
			{"name": "g2", "resources": {"CPU": 8}, "labels": {"zone": "a"}, "minReplicas": 1, "maxReplicas": 1}],
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 3, "labelSelectors": [{"zone": "a"}]}, {"resources": {"CPU": 3}, "count": 2}]`,
			`{"id": "gang0", "strategy": "PACK", "bundles": [{"GPU": 1}], "topologyLabel": "zone"}`, map[string]int{"g1": 1, "g2": 1}, 0},
		"there are fewer nodes than it has bundles": {`"maxWorkers": 1, "head": {"state": "RUNNING", "resources": {"CPU": 16, "GPU": 4, "memory": 64000000000}},
			"groups": [{"name": "g1", "resources": {"CPU": 4, "GPU": 1, "memory": 16000000000}, "maxReplicas": 1},
			{"name": "g3", "resources": {"CPU": 8, "memory": 64000000000}, "labels": {"zone": "a"}, "maxReplicas": 6}], "pendingRequests": [{"resources": {"CPU": 3}, "count": 6}]`,
			`{"id": "gang0", "strategy": "STRICT_SPREAD", "bundles": [{"CPU": 0.5}, {"CPU": 3}, {"GPU": 1}]}`, map[string]int{"g3": 1}, 0},
		"it needs more than there is in sum, of groups whose prices would not count": {`"groups": [{"name": "a", "resources": {"CPU": 4}, "labels": {"zone": "a"}, "price": 2, "maxReplicas": 9},
			{"name": "b", "resources": {"CPU": 16}, "labels": {"zone": "a"}, "price": 1, "maxReplicas": 9}, {"name": "c", "resources": {"CPU": 64}, "maxReplicas": 1}],
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 4, "labelSelectors": [{"zone": "a"}]}]`,
			`{"id": "gang0", "strategy": "PACK", "bundles": [{"CPU": 4}, {"CPU": 64}, {"CPU": 64}, {"CPU": 64}, {"CPU": 64}]}`, map[string]int{"b": 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, `{`+c.snapshot+`}`), Policy{})
			beside := Compute(plannertest.Read(t, `{`+c.snapshot+`, "pendingGangRequests": [`+c.gang+`]}`), Policy{})
			if diff := cmp.Diff(c.want, plan.Launch); diff != "" {
				t.Errorf("launches (-want +got): %s", diff)
			}
			if diff := cmp.Diff(c.want, beside.Launch); diff != "" {
				t.Errorf("launches beside the gang (-want +got): %s", diff)
			}
			if len(plan.InfeasibleRequests) != c.left || len(beside.InfeasibleRequests) != c.left || len(beside.InfeasibleGangRequests) != 1 {
				t.Errorf("left are %v, beside the gang %v and of gangs %v", plan.InfeasibleRequests, beside.InfeasibleRequests, beside.InfeasibleGangRequests)
			}
		})
	}
}
