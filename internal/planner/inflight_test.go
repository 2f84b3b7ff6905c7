package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/place"
)

func drawCaps(t *rapid.T) Policy {
	return Policy{MaxInFlight: rapid.IntRange(0, 6).Draw(t, "maxInFlight")}
}

// onTheWayTo counts the pods on their way by group, including requested ones that are not listed.
func onTheWayTo(s Snapshot) map[string]int {
	counts := map[string]int{}
	p := place.NewFleet(&s)
	for i := range p.Groups {
		counts[p.Groups[i].Name] = int(p.Groups[i].Pending())
	}
	return counts
}

func total(counts map[string]int) (n int) {
	for _, each := range counts {
		n += each
	}
	return n
}

func TestAPlanStaysWithinTheCapsOnPodsOnTheirWay(t *testing.T) {
	forEachKind(t, func(t *rapid.T, s Snapshot) {
		policy := drawCaps(t)
		plan, waiting := Compute(s, policy), onTheWayTo(s)
		hosts := 1
		for _, g := range s.Groups {
			hosts = max(hosts, g.NumOfHosts)
		}
		if most := max(policy.MaxInFlight, hosts); policy.MaxInFlight > 0 && len(plan.Launch) > 0 && total(waiting)+total(plan.Launch) > most {
			t.Errorf("launches %v with %v on their way, at most %d may be", plan.Launch, waiting, most)
		}
	})
}

func TestOnceACappedPlanIsAppliedTheNextPlanIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy := drawSnapshot(t), drawCaps(t)
		plan := Compute(s, policy)
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		next := applied(s, plan, 0)
		if again := Compute(next, policy); len(again.Launch) > 0 {
			t.Errorf("launches %v, then %v\n%s\n%s", plan.Launch, again.Launch, compact(policy), compact(s))
		}
	})
}

// joined is the snapshot after all pods on their way have joined and before anything uses them.
func joined(s Snapshot) Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.State == Pending {
			n.State, n.Expected = Idle, false
		}
	}
	return s
}

// TestStepsServeWhatOnePlanServes lets the pods of each step join before the next plan. It has only one demand, because
// which of several uses a joined node is another question.
func TestStepsServeWhatOnePlanServes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy := drawSnapshot(t), drawCaps(t)
		s.UpscalingMode, s.IdleTimeoutSeconds = "", nil
		switch s = joined(s); rapid.IntRange(0, 2).Draw(t, "kind of demand") {
		case 0:
			s.Requests, s.Gangs, s.Constraint, s.KeptResources = s.Requests[:min(len(s.Requests), 1)], nil, nil, nil
		case 1:
			s.Requests, s.Gangs, s.Constraint, s.KeptResources = nil, s.Gangs[:min(len(s.Gangs), 1)], nil, nil
		case 2:
			s.Requests, s.Gangs, s.KeptResources = nil, nil, nil
		}
		want := Compute(s, Policy{})
		if len(want.Terminate) > 0 || total(onTheWayTo(s)) > 0 {
			return // stopped pods make room, and lost hosts of a replica never return here
		}
		launched := 0
		for step := range 100 {
			plan := Compute(s, policy)
			if len(plan.Launch) == 0 {
				if unmet(plan) > unmet(want) {
					t.Errorf("%d steps leave %d, one plan %d\n%s\n%s", step, unmet(plan), unmet(want), compact(policy), compact(s))
				}
				return
			}
			launched += total(plan.Launch)
			s = joined(applied(s, plan, step))
		}
		t.Errorf("no end after %d pods", launched)
	})
}

func TestCapsTakeNothingFromAPlanThatKeepsToThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.UpscalingMode = "" // which is an in-flight cap too
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(s, Policy{MaxInFlight: 1000}))); diff != "" {
			t.Error(diff)
		}
	})
}
