package planner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func asJSON(t rapid.TB, v any) string {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatalf("writing %T: %v", v, err)
	}
	return string(raw)
}

func TestAPlanStaysWithinAllLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		plan := Compute(s, Policy{})
		hosts, joined, pending := map[string]int{}, map[string]int{}, map[string]int{}
		for _, n := range s.Nodes {
			switch n.State {
			case Running, Idle:
				joined[n.Group]++
			case Pending:
				pending[n.Group]++
			}
		}
		for _, g := range s.Groups {
			hosts[g.Name] = g.NumOfHosts
			step := max(5, joined[g.Name], g.NumOfHosts)
			if launch := plan.Launch[g.Name]; s.UpscalingMode == "Conservative" && launch > 0 && pending[g.Name]+launch > step {
				t.Errorf("launches %d of %s with %d on their way, Conservative allows %d in all", launch, g.Name, pending[g.Name], step)
			}
			if plan.Launch[g.Name] > 0 && g.Closed != "" {
				t.Errorf("launches into closed group %s", g.Name)
			}
		}
		total := 0
		for _, row := range plan.Groups {
			launch := plan.Launch[row.Name]
			total += row.Current + launch
			if launch%hosts[row.Name] != 0 {
				t.Errorf("launches %d pods of %s, whose replicas have %d", launch, row.Name, hosts[row.Name])
			}
			if launch > 0 && row.Current+launch > row.Max {
				t.Errorf("group %s would have %d of at most %d", row.Name, row.Current+launch, row.Max)
			}
			if len(row.Reasons) == 0 {
				t.Errorf("group %s has no reason", row.Name)
			}
		}
		if s.MaxWorkers != nil && len(plan.Launch) > 0 && total > *s.MaxWorkers {
			t.Errorf("%d workers in all, at most %d allowed", total, *s.MaxWorkers)
		}
	})
}

func TestOnlyIdleNodesAboveTheMinimumAreStoppedAsIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		plan := Compute(s, Policy{})
		state := map[string]NodeState{}
		left := map[string]int{}
		for _, n := range s.Nodes {
			state[n.Pod] = n.State
			if n.State != Leaving && n.State != AllocationTimeout {
				left[n.Group]++
			}
		}
		idleStops := map[string]bool{}
		for _, stop := range plan.Terminate {
			left[stop.Group]--
			if stop.Busy != (state[stop.Pod] == Running) {
				t.Errorf("%s is %s, busy says %v", stop.Pod, state[stop.Pod], stop.Busy)
			}
			if stop.Reason == model.StopIdle {
				idleStops[stop.Group] = true
				if state[stop.Pod] != Idle {
					t.Errorf("%s is %s and stopped as idle", stop.Pod, state[stop.Pod])
				}
			}
		}
		for _, g := range s.Groups {
			if g.NumOfHosts == 1 && idleStops[g.Name] && left[g.Name] < g.Min {
				t.Errorf("group %s keeps %d, its minimum is %d", g.Name, left[g.Name], g.Min)
			}
		}
	})
}

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Nodes = rapid.Permutation(s.Nodes).Draw(t, "nodeOrder")
		shuffled.Requests = rapid.Permutation(s.Requests).Draw(t, "requestOrder")
		shuffled.Gangs = rapid.Permutation(s.Gangs).Draw(t, "gangOrder")
		shuffled.Constraint = rapid.Permutation(s.Constraint).Draw(t, "constraintOrder")
		shuffled.KeptResources = rapid.Permutation(s.KeptResources).Draw(t, "keptOrder")
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASnapshotIsNotChangedByPlanning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		before := asJSON(t, s)
		Compute(s, Policy{})
		if diff := cmp.Diff(before, asJSON(t, s)); diff != "" {
			t.Error(diff)
		}
	})
}

// applied is the snapshot after the whole plan has been carried out and nothing else has happened.
func applied(s Snapshot, plan Plan, round int) Snapshot {
	gone := map[string]bool{}
	stopped := map[string]int{}
	for _, stop := range plan.Terminate {
		gone[stop.Pod] = true
	}
	leaves := map[string]bool{} // multi-host replicas stop whole
	for _, n := range s.Nodes {
		leaves[n.Group+"/"+n.Replica] = leaves[n.Group+"/"+n.Replica] || gone[n.Pod] && n.Replica != ""
	}
	for _, n := range s.Nodes {
		gone[n.Pod] = gone[n.Pod] || n.State == Leaving && leaves[n.Group+"/"+n.Replica]
		if gone[n.Pod] {
			stopped[n.Group]++
		}
	}
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		if g := &s.Groups[i]; g.Replicas != nil {
			replicas := *g.Replicas + (plan.Launch[g.Name]-stopped[g.Name])/g.NumOfHosts
			g.Replicas = &replicas
		}
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return gone[n.Pod] })
	for _, g := range s.Groups {
		for i := range plan.Launch[g.Name] {
			n := Node{Pod: fmt.Sprintf("%s-%d-%d", g.Name, round, i), Group: g.Name, State: Pending, Total: g.Resources, Available: g.Resources, Labels: g.Labels}
			if g.NumOfHosts > 1 {
				n.Replica = fmt.Sprintf("%s-%d-%d", g.Name, round, i/g.NumOfHosts)
			}
			s.Nodes = append(s.Nodes, n)
		}
	}
	return s
}

func unmet(p Plan) (n int64) {
	for _, u := range p.InfeasibleRequests {
		n += u.Count
	}
	return n + int64(len(p.InfeasibleGangRequests)+len(p.InfeasibleRequestResources))
}

// settles applies plans. It fails if a plan still changes something after five rounds, or if a change follows a plan
// that stopped nothing.
func settles(t *rapid.T, s Snapshot) {
	plan := Compute(s, Policy{})
	for round := range 5 {
		s = applied(s, plan, round)
		next := Compute(s, Policy{})
		// Stopped pods make room, so what a limit held back may be launched in the next round.
		if len(plan.Terminate) == 0 && len(next.Launch)+len(next.Terminate) > 0 {
			t.Fatalf("round %d launches %v and stops %v after a plan that launched %v\n%s", round, next.Launch, next.Terminate, plan.Launch, plannertest.Compact(s))
		}
		plan = next
	}
	if len(plan.Launch)+len(plan.Terminate) > 0 {
		t.Fatalf("still launches %v and stops %v after five rounds", plan.Launch, plan.Terminate)
	}
}

func TestOnceAPlanIsAppliedTheNextPlanIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { settles(t, plannertest.DrawSnapshot(t)) })
}

func TestWithoutAnyOneLaunchedReplicaSomethingIsMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { everyReplicaIsNeeded(t, plannertest.DrawSnapshot(t), Policy{}) })
}

// byKind counts requests by what they ask for.
func byKind(requests []raydemand.Request) map[string]int64 {
	counts := map[string]int64{}
	for _, r := range requests {
		counts[Describe(r)] += r.Count
	}
	return counts
}

func unmetByKind(p Plan) map[string]int64 {
	requests := make([]raydemand.Request, len(p.InfeasibleRequests))
	for i, u := range p.InfeasibleRequests {
		requests[i] = u.Request
	}
	return byKind(requests)
}

func TestCountsAddUpToTheDemand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		plan := Compute(s, Policy{})
		asked, unmet := byKind(s.Requests), unmetByKind(plan)
		for kind, n := range unmet {
			if n <= 0 || n > asked[kind] {
				t.Errorf("%d of %s are unmet, %d were asked for", n, kind, asked[kind])
			}
		}
		free, served := raydemand.Bundle{}, raydemand.Bundle{}
		for _, n := range newSolver(applied(s, plan, 0)).free {
			free.Add(n)
		}
		for _, r := range s.Requests {
			kind := Describe(r)
			left := min(unmet[kind], r.Count)
			unmet[kind] -= left
			for range r.Count - left {
				served.Add(r.Bundle)
			}
		}
		for _, name := range served.Names() {
			if !strings.HasPrefix(name, raydemand.ImplicitPrefix) && served[name] > free[name] {
				t.Errorf("%s of %s are called served, %s are free", served[name], name, free[name])
			}
		}
	})
}

func TestARequestForManyIsThatManyRequestsForOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		single := s
		single.Requests = nil
		for _, r := range s.Requests {
			for range r.Count {
				one := r
				one.Count = 1
				single.Requests = append(single.Requests, one)
			}
		}
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(single, Policy{}))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatAPlanServesTheNextOneServesToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		plan := Compute(s, Policy{})
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		next := Compute(applied(s, plan, 0), Policy{})
		if diff := cmp.Diff(unmetByKind(plan), unmetByKind(next)); diff != "" {
			t.Errorf("unmet (-this plan +the next): %s\n%s", diff, plannertest.Compact(s))
		}
		if a, b := len(plan.InfeasibleGangRequests), len(next.InfeasibleGangRequests); a != b {
			t.Errorf("%d gangs are unmet in this plan, %d in the next: %s", a, b, plannertest.Compact(s))
		}
		if a, b := len(plan.InfeasibleRequestResources), len(next.InfeasibleRequestResources); a != b {
			t.Errorf("%d shapes of request_resources are unmet in this plan, %d in the next: %s", a, b, plannertest.Compact(s))
		}
	})
}

// TestRequestResourcesIsServedInFullOrNotAtAll reads each call by itself, because the two are not added.
func TestRequestResourcesIsServedInFullOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		s.UpscalingMode = "" // which launches it in part
		var rest []raydemand.Request
		for _, u := range Compute(s, Policy{}).InfeasibleRequestResources {
			rest = append(rest, u.Request)
		}
		got := byKind(rest)
		both := byKind(slices.Concat(s.Constraint, s.KeptResources))
		for _, want := range []map[string]int64{{}, byKind(s.Constraint), byKind(s.KeptResources), both} {
			if maps.Equal(got, want) {
				return
			}
		}
		t.Errorf("unmet are %v; asked were %v and %v", got, byKind(s.Constraint), byKind(s.KeptResources))
	})
}

func TestAGangThatCannotBeServedWholeLaunchesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		s.Requests, s.Constraint, s.KeptResources = nil, nil, nil
		s.Gangs = s.Gangs[:min(len(s.Gangs), 1)]
		without := s
		without.Gangs = nil
		plan := Compute(s, Policy{})
		if len(plan.InfeasibleGangRequests) == 0 {
			return
		}
		if diff := cmp.Diff(Compute(without, Policy{}).Launch, plan.Launch); diff != "" {
			t.Errorf("launches for a gang that is not served: %s", diff)
		}
	})
}
