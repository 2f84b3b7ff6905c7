package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/internal/planner/plannertest"
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
	rapid.Check(t, func(t *rapid.T) {
		s, policy := plannertest.DrawSnapshot(t), drawCaps(t)
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
		s, policy := plannertest.DrawSnapshot(t), drawCaps(t)
		plan := Compute(s, policy)
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		next := applied(s, plan, 0)
		if again := Compute(next, policy); len(again.Launch) > 0 {
			t.Errorf("launches %v, then %v\n%s\n%s", plan.Launch, again.Launch, plannertest.Compact(policy), plannertest.Compact(s))
		}
	})
}

func TestWithoutAnyOneReplicaOfACappedPlanSomethingIsMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, policy := plannertest.DrawSnapshot(t), drawCaps(t)
		everyReplicaIsNeeded(t, s, policy)
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
		s, policy := plannertest.DrawSnapshot(t), drawCaps(t)
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
					t.Errorf("%d steps leave %d, one plan %d\n%s\n%s", step, unmet(plan), unmet(want), plannertest.Compact(policy), plannertest.Compact(s))
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
		s := plannertest.DrawSnapshot(t)
		s.UpscalingMode = "" // which is an in-flight cap too
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(s, Policy{MaxInFlight: 1000}))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACapIsNamedWithItsNumber(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 100}], "pendingRequests": [{"resources": {"CPU": 1}, "count": 9}],
		"nodes": [{"pod": "coming", "group": "g", "state": "PENDING", "total": {"CPU": 1}, "available": {"CPU": 0}}]}`)
	for want, caps := range map[string]Policy{
		"maxInFlight allows all groups together 4 pods on the way at once (have 4)": {MaxInFlight: 4},
		"maxInFlight allows all groups together 3 pods on the way at once (have 3)": {MaxInFlight: 3},
	} {
		plan := Compute(s, caps)
		if len(plan.InfeasibleRequests) != 1 {
			t.Fatalf("unmet are %v, want the rest of the request", plan.InfeasibleRequests)
		}
		if diff := cmp.Diff(Reason{Code: Capped, Message: want}, plan.InfeasibleRequests[0].Reason); diff != "" {
			t.Errorf("the rest is held back (-want +got): %s", diff)
		}
		text := fmt.Sprintf("; %d more follow when earlier pods have joined", plan.Groups[0].Held)
		if got := plan.Groups[0].Reasons[0].Message; !strings.Contains(got, text) {
			t.Errorf("the group says %q, want %q in it", got, text)
		}
	}
}

// TestALimitBehindACapIsNamed plans demand that more than waiting for the cap keeps from being served.
func TestALimitBehindACapIsNamed(t *testing.T) {
	const g = `{"groups": [{"name": "g", "resources": {"CPU": 1}, "maxReplicas": 5}], `
	const atMax, alone = "group g is at its maximum of 5 (has 0, launching 2, 3 more follow)",
		"maxInFlight allows all groups together 2 pods on the way at once (have 2)"
	for name, c := range map[string]struct {
		snapshot string
		want     func(Plan) string
		reason   string
	}{
		"a part follows": {
			g + `"pendingRequests": [{"resources": {"CPU": 1}, "count": 9}]}`,
			func(p Plan) string { return p.InfeasibleRequests[0].Reason.Message },
			alone + "; waiting does not help 4 of 7: " + atMax,
		},
		"all of it follows": {
			g + `"pendingRequests": [{"resources": {"CPU": 1}, "count": 5}]}`,
			func(p Plan) string { return p.InfeasibleRequests[0].Reason.Message },
			alone,
		},
		"a quota": {
			g + `"quotas": [{"name": "team", "resource": "cpu", "amount": 4, "podTakes": {"g": 1}}], "pendingRequests": [{"resources": {"CPU": 1}, "count": 5}]}`,
			func(p Plan) string { return p.InfeasibleRequests[0].Reason.Message },
			alone + "; waiting does not help 1 of 3: group g is at its quota: team has 4 cpu, 0 left; one pod takes 1",
		},
		"none of it follows": {
			g + `"pendingRequests": [{"resources": {"CPU": 1}, "count": 5}], "pendingGangRequests": [{"strategy": "SPREAD", "bundles": [{"CPU": 1}, {"CPU": 1}, {"CPU": 1}, {"CPU": 1}, {"CPU": 1}, {"CPU": 1}]}]}`,
			func(p Plan) string { return p.InfeasibleGangRequests[0].Reason.Message },
			"needs all 6 bundles at once: " + atMax,
		},
		"a call of request_resources": {
			g + `"pendingRequests": [{"resources": {"CPU": 1}, "count": 5}], "requestResources": [{"resources": {"CPU": 1}, "count": 6}]}`,
			func(p Plan) string { return p.InfeasibleRequestResources[0].Reason.Message },
			atMax,
		},
		"an owned request": {
			g + `"ownedRequests": [{"id": "a", "owner": "ann", "requests": [{"resources": {"CPU": 1}, "count": 7}]}]}`,
			func(p Plan) string { return p.Requests[0].Reason.Message },
			"2 of 7 bundles: " + atMax,
		},
		"the request without an owner": {
			g + `"pendingRequests": [{"resources": {"CPU": 1}, "count": 5}], "keptResources": [{"resources": {"CPU": 1}, "count": 6}]}`,
			func(p Plan) string { return string(p.Requests[0].State) + ": " + p.Requests[0].Reason.Message },
			"Capped: needs all 6 bundles at once: " + atMax,
		},
		"a minimum": {
			`{"maxWorkers": 4, "groups": [{"name": "g", "resources": {"CPU": 1}, "minReplicas": 6, "maxReplicas": 10}]}`,
			func(p Plan) string { return p.Groups[0].Reasons[1].Message },
			"2 pods below its minimum of 6: all groups together are at their maximum of 4",
		},
		"a minimum of which nothing is launched": {
			`{"maxWorkers": 4, "groups": [{"name": "a", "resources": {"CPU": 1}, "minReplicas": 3}, {"name": "g", "resources": {"CPU": 1}, "minReplicas": 6}]}`,
			func(p Plan) string { return p.Groups[1].Reasons[0].Message },
			"6 pods below its minimum of 6: " + alone + "; waiting does not help 5 pods: all groups together are at their maximum of 4",
		},
		"another group takes the rest": {
			`{"maxWorkers": 4, "groups": [{"name": "g", "resources": {"CPU": 1}, "minReplicas": 4}, {"name": "h", "resources": {"CPU": 1}, "minReplicas": 1}]}`,
			func(p Plan) string { return p.Groups[1].Reasons[0].Message },
			"1 pod below its minimum of 1: all groups together are at their maximum of 4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, c.snapshot), Policy{MaxInFlight: 2})
			if diff := cmp.Diff(c.reason, c.want(plan)); diff != "" {
				t.Errorf("the reason (-want +got): %s", diff)
			}
		})
	}
}
