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
	"heliostat.dev/heliostat/internal/planner/place"
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
	forEachKind(t, func(t *rapid.T, s Snapshot) {
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
			if plan.Launch[g.Name] > 0 && (g.Closed != "" || g.CoolingSeconds > 0) {
				t.Errorf("launches into group %s, which takes none", g.Name)
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
		s := drawSnapshot(t)
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

// kinds are the drawers of the properties that hold for all snapshots.
var kinds = []struct {
	name string
	draw func(*rapid.T) Snapshot
}{
	{"plain", drawSnapshot}, {"owned", drawOwned}, {"marked", drawMarked}, {"sliced", drawSliced},
	{"pooled", drawPooled}, {"served", drawServed}, {"domains", drawDomains}, {"priced", drawPriced},
	{"warm", drawWarm}, {"tried", drawFits},
}

// forEachKind checks a property of snapshots of each kind.
func forEachKind(t *testing.T, check func(*rapid.T, Snapshot)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind.name, rapid.MakeCheck(func(t *rapid.T) { check(t, kind.draw(t)) }))
	}
}

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	forEachKind(t, func(t *rapid.T, s Snapshot) {
		shuffled := s
		shuffled.Groups = rapid.Permutation(s.Groups).Draw(t, "groupOrder")
		shuffled.Nodes = rapid.Permutation(s.Nodes).Draw(t, "nodeOrder")
		shuffled.Requests = rapid.Permutation(s.Requests).Draw(t, "requestOrder")
		shuffled.Gangs = rapid.Permutation(s.Gangs).Draw(t, "gangOrder")
		shuffled.Constraint = rapid.Permutation(s.Constraint).Draw(t, "constraintOrder")
		shuffled.KeptResources = rapid.Permutation(s.KeptResources).Draw(t, "keptOrder")
		shuffled.OwnedRequests = rapid.Permutation(s.OwnedRequests).Draw(t, "ownedOrder")
		if diff := cmp.Diff(asJSON(t, Compute(s, Policy{})), asJSON(t, Compute(shuffled, Policy{}))); diff != "" {
			t.Errorf("%s\n%s", diff, compact(s))
		}
	})
}

func TestASnapshotIsNotChangedByPlanning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
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

// triesForGang reports whether some gang waits for what a replica turns out to be. The next gang may follow it.
func triesForGang(p Plan) bool {
	return slices.ContainsFunc(p.InfeasibleGangRequests, func(u UnmetGang) bool { return u.Reason.Code == Trying })
}

// settles applies plans. It fails if a plan still changes something after five rounds, or if a change follows a plan
// that stopped nothing and tried nothing for gangs.
func settles(t *rapid.T, s Snapshot) {
	plan := Compute(s, Policy{})
	for round := range 5 {
		s = applied(s, plan, round)
		next := Compute(s, Policy{})
		// Stopped pods make room, so what a limit held back may be launched in the next round.
		if len(plan.Terminate) == 0 && !triesForGang(plan) && len(next.Launch)+len(next.Terminate) > 0 {
			t.Fatalf("round %d launches %v and stops %v after a plan that launched %v\n%s", round, next.Launch, next.Terminate, plan.Launch, compact(s))
		}
		plan = next
	}
	if len(plan.Launch)+len(plan.Terminate) > 0 {
		t.Fatalf("still launches %v and stops %v after five rounds", plan.Launch, plan.Terminate)
	}
}

func TestOnceAPlanIsAppliedTheNextPlanIsEmpty(t *testing.T) {
	forEachKind(t, settles)
}

func TestWithoutAnyOneLaunchedReplicaSomethingIsMissing(t *testing.T) {
	for name, draw := range map[string]func(*rapid.T) Snapshot{
		"plain": drawSnapshot, "priced": drawPriced, "pooled": drawPooled,
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			everyReplicaIsNeeded(t, draw(t), rapid.OneOf(rapid.Just(Policy{}), rapid.Custom(drawCaps)).Draw(t, "policy"))
		}))
	}
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

func TestARequestForManyIsThatManyRequestsForOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
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
		s := drawSnapshot(t)
		plan := Compute(s, Policy{})
		if len(plan.Terminate) > 0 {
			return // stopped pods make room
		}
		next := Compute(applied(s, plan, 0), Policy{})
		if diff := cmp.Diff(unmetByKind(plan), unmetByKind(next)); diff != "" {
			t.Errorf("unmet (-this plan +the next): %s\n%s", diff, compact(s))
		}
		if a, b := len(plan.InfeasibleGangRequests), len(next.InfeasibleGangRequests); a != b {
			t.Errorf("%d gangs are unmet in this plan, %d in the next: %s", a, b, compact(s))
		}
		if a, b := len(plan.InfeasibleRequestResources), len(next.InfeasibleRequestResources); a != b {
			t.Errorf("%d shapes of request_resources are unmet in this plan, %d in the next: %s", a, b, compact(s))
		}
	})
}

// TestRequestResourcesIsServedInFullOrNotAtAll reads each call by itself, because the two are not added.
func TestRequestResourcesIsServedInFullOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
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

// drawMarked draws a small cluster whose groups have some of the properties that operators and the loop know: prices,
// priorities, scores of failed launches, idle timeouts, and pools of nodes with limits.
func drawMarked(t *rapid.T) Snapshot {
	s := drawSnapshot(t)
	some := func(name string, one int) bool { return rapid.IntRange(1, one).Draw(t, name) == one }
	for i := range s.Groups {
		g := &s.Groups[i]
		if rapid.Bool().Draw(t, "priced") {
			price := float64(rapid.IntRange(0, 9).Draw(t, "price"))
			g.Price = &price
		}
		g.Priority = rapid.IntRange(0, 1).Draw(t, "priority")
		if some("scored", 4) {
			score := float64(rapid.IntRange(0, 4).Draw(t, "quarters")) / 4
			g.RecoverableScore = &score
		}
		if some("cooling", 6) && g.Closed == "" && g.Replicas == nil {
			g.CoolingSeconds = 30
		}
		if some("own idle time-out", 4) {
			timeout := float64(rapid.IntRange(0, 120).Draw(t, "timeout"))
			g.IdleTimeoutSeconds = &timeout
		}
		if some("pooled", 3) {
			most := rapid.Int64Range(0, 6).Draw(t, "most")
			g.Pools = []GroupPool{{Name: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pool"), MaxPods: &most, Units: rapid.Int64Range(1, 3).Draw(t, "units")}}
		}
	}
	return s
}

// errorer is a *testing.T or a *rapid.T.
type errorer interface {
	Helper()
	Errorf(format string, args ...any)
}

// everyReplicaIsNeeded fails if a plan without one of its launched replicas would serve as much and be complete.
func everyReplicaIsNeeded(t errorer, s Snapshot, policy Policy) {
	t.Helper()
	plan := Compute(s, policy)
	hosts := map[string]int{}
	for i := range s.Groups {
		hosts[s.Groups[i].Name] = s.Groups[i].NumOfHosts
	}
	for _, name := range slices.Sorted(maps.Keys(plan.Launch)) {
		less := plan
		less.Launch, less.Terminate = maps.Clone(plan.Launch), nil
		less.Launch[name] -= hosts[name]
		without := applied(s, less, 0)
		if again := Compute(without, policy); len(again.Launch) == 0 && unmet(again) <= unmet(plan) && leavesNoMore(without, s, policy) {
			t.Errorf("launches %v, and one replica of %s less serves as much\n%s\n%s", plan.Launch, name, compact(policy), compact(s))
		}
	}
}

// leavesNoMore reports whether the requests that a plan of s leaves unserved ask for as little as those of a plan of
// other. The number of requests does not say so: of requests for {CPU: 1, GPU: 1} and for {GPU: 1}, a plan can serve two
// of the first kind, or one of each kind. The objective prefers the former.
func leavesNoMore(s, other Snapshot, policy Policy) bool {
	return place.CompareNearly(unservedAmount(s, policy), unservedAmount(other, policy)) <= 0
}

// unservedAmount is what a plan's unserved requests ask for, by the weights of the objective.
func unservedAmount(s Snapshot, policy Policy) (sum float64) {
	p, _, out := place.Decide(&s, policy)
	for i, n := range out.Unserved {
		sum += float64(n) * p.Needed(p.Requests[i])
	}
	return sum
}

// eachOf writes a number of gangs with the same bundles.
func eachOf(strategy, bundles string, count int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`{"id": "%d", "strategy": "%s", "bundles": [%s]}`, i, strategy, bundles))
	}
	return strings.Join(all, ", ")
}

func TestRealisticPlansHaveNothingToSpare(t *testing.T) {
	for _, s := range markets(40) {
		everyReplicaIsNeeded(t, s, Policy{})
	}
}
