package planner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// drawFits draws a snapshot, some of whose groups fit no known node.
func drawFits(t *rapid.T) Snapshot {
	s := plannertest.DrawSnapshot(t)
	verdicts := []landing.State{"", "", landing.Trying, landing.Trying, landing.Nowhere, landing.Limited}
	for i := range s.Groups {
		if v := rapid.SampledFrom(verdicts).Draw(t, "verdict"); v != "" {
			s.Groups[i].NodeFit = &model.NodeFit{Verdict: v, Why: "there is no node"}
		}
	}
	return s
}

func TestOneReplicaOfAGroupThatIsTriedIsOnItsWayAndNoneOfOneThatIsExcluded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawFits(t)
		plan, waiting := Compute(s, Policy{}), onTheWayTo(s)
		for _, g := range s.Groups {
			joined := slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Group == g.Name && (n.State == Running || n.State == Idle) })
			launch := plan.Launch[g.Name]
			if g.Excluded() && launch > 0 {
				t.Errorf("launches %d of %s, which fits nowhere\n%s", launch, g.Name, plannertest.Compact(s))
			}
			if g.NodeFit != nil && !g.Excluded() && !joined && launch > 0 && launch+waiting[g.Name] > g.NumOfHosts {
				t.Errorf("launches %d of %s with %d on their way, want one replica at a time\n%s", launch, g.Name, waiting[g.Name], plannertest.Compact(s))
			}
		}
	})
}

func TestOnceAPlanWithATryIsAppliedTheNextPlanIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawFits(t)
		plan := Compute(s, Policy{})
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		if again := Compute(applied(s, plan, 0), Policy{}); len(again.Launch) > 0 {
			t.Errorf("launches %v, then %v\n%s", plan.Launch, again.Launch, plannertest.Compact(s))
		}
	})
}

// TestATryTakesNothingFromGroupsThatFit compares with a plan in which the groups that are tried are closed. It has only
// requests: a gang or call that can be served with tries also launches groups that fit, whose pods then serve others.
func TestATryTakesNothingFromGroupsThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawFits(t)
		s.Nodes, s.Gangs, s.Constraint, s.KeptResources = nil, nil, nil, nil
		closed := s
		closed.Groups = slices.Clone(s.Groups)
		for i := range s.Groups {
			if s.Groups[i].Min = 0; s.Groups[i].NodeFit != nil && !s.Groups[i].Excluded() {
				closed.Groups[i].Closed, closed.Groups[i].NodeFit = "it is tried", nil
			}
			s.Groups[i].Replicas, closed.Groups[i].Replicas, closed.Groups[i].Min = nil, nil, 0
		}
		with, without := Compute(s, Policy{}), Compute(closed, Policy{})
		for name, n := range without.Launch {
			if with.Launch[name] < n {
				t.Errorf("launches %v, and %v without the groups that are tried\n%s", with.Launch, without.Launch, plannertest.Compact(s))
			}
		}
	})
}
