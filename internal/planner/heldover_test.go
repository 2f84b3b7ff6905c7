package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// withSatisfied sets since when requests are satisfied, as the controller does.
func withSatisfied(s Snapshot, plan Plan, round int) Snapshot {
	s.OwnedRequests = slices.Clone(s.OwnedRequests)
	for i := range s.OwnedRequests {
		switch of := &s.OwnedRequests[i]; {
		case stateIn(plan, of.ID) != raydemand.RequestSatisfied:
			of.SatisfiedSince = time.Time{}
		case of.SatisfiedSince.IsZero():
			of.SatisfiedSince = time.Unix(int64(100+round), 0).UTC()
		}
	}
	return s
}

// someJoined lets some of the pods on their way join Ray.
func someJoined(t *rapid.T, s Snapshot) Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		if s.Nodes[i].State == Pending && rapid.Bool().Draw(t, "joins") {
			s.Nodes[i].State = Idle
		}
	}
	return s
}

func stateIn(plan Plan, id string) raydemand.RequestState {
	for _, r := range plan.Requests {
		if r.ID == id && !r.Plain {
			return r.State
		}
	}
	return ""
}

// TestWhatIsSatisfiedStaysSoWhateverGrowsElsewhere adds another request of any priority and applies the plan for both.
// Neither that plan nor the next ones, while its pods join, take from a request what it has on joined workers, unless a
// limit prevents serving all of them.
func TestWhatIsSatisfiedStaysSoWhateverGrowsElsewhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawServed(t)
		before := Compute(s, Policy{})
		s = withSatisfied(applied(s, before, 0), before, 0)
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{
			ID: "grown", Owner: "o", Priority: int32(rapid.IntRange(0, 3).Draw(t, "priority")), Requests: drawCores(t, "of what grows", 3),
		})
		for round := 1; round < 4; round++ {
			plan := Compute(s, Policy{})
			for _, r := range plan.Requests {
				if stateIn(before, r.ID) == raydemand.RequestSatisfied && r.State == raydemand.RequestWaiting {
					t.Fatalf("round %d: %s was satisfied and is now %s: %s; stops %v\n%s", round, r.ID, r.State, r.Reason.Message, plan.Terminate, plannertest.Compact(s))
				}
			}
			before = plan
			s = someJoined(t, withSatisfied(applied(s, plan, round), plan, round))
		}
	})
}

func TestAWorkerThatServesARequestStaysUntilWhatReplacesItHasJoined(t *testing.T) {
	// With b's bundles, the cheapest place of a's bundles is the pod that is launched for both.
	cpu4, cpu9 := `{"CPU": 4, "memory": 2147483648}`, `{"CPU": 9, "memory": 8589934592}`
	repacked := `{"idleTimeoutSeconds": 60, "groups": [{"name": "large", "resources": ` + cpu9 + `, "maxReplicas": 2}, {"name": "small", "resources": ` + cpu4 + `, "maxReplicas": 2}], "nodes": [
		{"pod": "small-0", "group": "small", "state": "IDLE", "total": ` + cpu4 + `, "idleSeconds": 61}, {"pod": "small-1", "group": "small", "state": "IDLE", "total": ` + cpu4 + `},
		{"pod": "large-0", "group": "large", "state": "IDLE", "total": ` + cpu9 + `}], "ownedRequests": [{"id": "a", "owner": "ann", "satisfiedSince": "2026-01-01T00:00:00Z", "requests": [
			{"resources": {"CPU": 1, "memory": 4294967296}, "count": 2}, {"resources": {"CPU": 3, "memory": 1073741824}, "count": 2}, {"resources": {"CPU": 1}, "count": 1}]},
		{"id": "b", "owner": "bob", "requests": [{"resources": {"CPU": 4}, "count": 2}]}]}`
	const same = `{"idleTimeoutSeconds": 60, "groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 4}], "nodes": [
		{"pod": "gpu-0", "group": "gpu", "state": "IDLE", "total": {"GPU": 1}, "available": {"GPU": 1}, "idleSeconds": 600}],
		"ownedRequests": [{"id": "a", "owner": "ann", "satisfiedSince": "2026-01-01T00:00:00Z", "requests": [{"resources": {"GPU": 1}, "count": 1}]},
		{"id": "b", "owner": "bob", "priority": 9, "requests": [{"resources": {"GPU": 1}, "count": 1}]}]}`
	for name, test := range map[string]struct{ snapshot, states, held string }{
		"what another packing would leave idle is held over":            {repacked, "a=Satisfied 5+0/5 (satisfied), b=Waiting 1+1/2 (launch)", "small"},
		"a later request with a higher priority waits for its own pods": {same, "a=Satisfied 1+0/1 (satisfied), b=Waiting 0+1/1 (launch)", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, test.snapshot), Policy{})
			if diff := cmp.Diff(test.states, statesOf(plan)); diff != "" || len(plan.Terminate) > 0 {
				t.Errorf("stops %v; requests (-want +got): %s", plan.Terminate, diff)
			}
			for _, g := range plan.Groups {
				if held := slices.ContainsFunc(g.Reasons, func(r Reason) bool { return r.Code == model.CodeHeldOver }); held != (g.Name == test.held) {
					t.Errorf("group %s: %v", g.Name, g.Reasons)
				}
			}
		})
	}
}

// drawServed draws a cluster without limits, with idle workers that stay only for the requests of owners.
func drawServed(t *rapid.T) Snapshot {
	timeout := 60.0
	s := Snapshot{IdleTimeoutSeconds: &timeout}
	for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
		cores := raydemand.Bundle{"CPU": raydemand.Whole(rapid.Int64Range(2, 16).Draw(t, "cores")), "memory": raydemand.Whole(rapid.Int64Range(2, 16).Draw(t, "memory") << 30)}
		s.Groups = append(s.Groups, Group{Name: fmt.Sprintf("g%d", i), Resources: cores, Max: rapid.SampledFrom([]int{2, 4, 100}).Draw(t, "max"), NumOfHosts: 1})
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		g := rapid.SampledFrom(s.Groups).Draw(t, "group")
		s.Nodes = append(s.Nodes, Node{Pod: fmt.Sprintf("n%d", i), Group: g.Name, State: Idle, Total: g.Resources, Available: g.Resources,
			IdleSeconds: float64(rapid.IntRange(0, 120).Draw(t, "idle"))})
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "owners") {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{
			ID: fmt.Sprintf("r%d", i), Owner: "o", Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")), Requests: drawCores(t, "of owner", 3),
		})
	}
	return s
}

func drawCores(t *rapid.T, label string, most int) []raydemand.Request {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) raydemand.Request {
		return raydemand.Request{Count: rapid.Int64Range(1, 7).Draw(t, "count"), Bundle: raydemand.Bundle{
			"CPU": raydemand.Whole(rapid.Int64Range(1, 8).Draw(t, "cores")), "memory": raydemand.Whole(rapid.Int64Range(0, 8).Draw(t, "memory") << 30)}}
	}), 1, most).Draw(t, label)
}
