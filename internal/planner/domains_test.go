package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestTheOrderOfTheInputDoesNotMatterForDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawDomains(t)
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Nodes = rapid.Permutation(s.Nodes).Draw(t, "nodeOrder")
		shuffled.Gangs = rapid.Permutation(s.Gangs).Draw(t, "gangOrder")
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Errorf("%s\n%s", diff, plannertest.Compact(s))
		}
	})
}

func TestOnceAPlanForDomainsIsAppliedTheNextPlanIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { settles(t, plannertest.DrawDomains(t)) })
}
