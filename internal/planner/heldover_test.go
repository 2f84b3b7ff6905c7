package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

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
					t.Fatalf("round %d: %s was satisfied and is now %s: %s; stops %v\n%s", round, r.ID, r.State, r.Reason.Message, plan.Terminate, compact(s))
				}
			}
			before = plan
			s = someJoined(t, withSatisfied(applied(s, plan, round), plan, round))
		}
	})
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
