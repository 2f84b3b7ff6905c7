package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// eachOf writes a number of gangs with the same bundles.
func eachOf(strategy, bundles string, count int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`{"id": "%d", "strategy": "%s", "bundles": [%s]}`, i, strategy, bundles))
	}
	return strings.Join(all, ", ")
}

func TestPricesAndPrioritiesKeepTheProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawPriced(t)
		plan := Compute(s, Policy{})
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Requests = rapid.Permutation(s.Requests).Draw(t, "requestOrder")
		shuffled.Gangs = rapid.Permutation(s.Gangs).Draw(t, "gangOrder")
		if diff := cmp.Diff(asJSON(t, plan), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Errorf("another order of the input makes another plan: %s", diff)
		}
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		if next := Compute(applied(s, plan, 0), Policy{}); len(next.Launch) > 0 {
			t.Errorf("launches %v after a plan that launched %v: %s", next.Launch, plan.Launch, plannertest.Compact(s))
		}
		everyReplicaIsNeeded(t, s, Policy{})
	})
}

func TestRealisticPlansAreFixedPointsWithNothingToSpare(t *testing.T) {
	for i, s := range markets(40) {
		plan := Compute(s, Policy{})
		if next := Compute(applied(s, plan, 0), Policy{}); len(next.Launch) > 0 {
			t.Errorf("instance %d launches %v after %v", i, next.Launch, plan.Launch)
		}
		for _, g := range s.Groups {
			if plan.Launch[g.Name] == 0 {
				continue
			}
			less := applied(s, plan, 0)
			at := slices.IndexFunc(less.Nodes, func(n Node) bool { return n.Group == g.Name })
			less.Nodes = slices.Delete(slices.Clone(less.Nodes), at, at+1)
			if again := Compute(less, Policy{}); len(again.Launch) == 0 && len(again.InfeasibleRequests) == 0 {
				t.Errorf("instance %d: %s", i, fmt.Sprintf("one %s less serves as much as %v", g.Name, plan.Launch))
			}
		}
	}
}
