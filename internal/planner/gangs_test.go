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
