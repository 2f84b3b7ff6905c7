package planner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ownResources are requests that each request a resource of their own.
func ownResources(from, count int) (requests []raydemand.Request) {
	for i := range count {
		requests = append(requests, raydemand.Request{Count: 1, Bundle: raydemand.Bundle{fmt.Sprintf("custom-%04d", from+i): raydemand.One}})
	}
	return requests
}

// little is a policy with which a plan takes on few of them.
var little = Policy{Shapes: 16}

// oneGroup has a group whose pods have all of these resources.
func oneGroup(requests []raydemand.Request, most int) Snapshot {
	s := Snapshot{LaunchConfigCheckDisabled: true, Groups: []Group{{Name: "g", Max: most, NumOfHosts: 1, Resources: raydemand.Bundle{"CPU": raydemand.Whole(8)}}}}
	for _, r := range requests {
		for name := range r.Bundle {
			s.Groups[0].Resources[name] = raydemand.One
		}
	}
	s.Requests = requests
	return s
}

// takenOn returns the custom resources and the gangs that a plan considers.
func takenOn(s Snapshot, plan Plan) map[string]bool {
	taken := map[string]bool{}
	for _, r := range s.Requests {
		taken[Describe(r)] = true
	}
	for _, g := range s.Gangs {
		taken[g.ID] = true
	}
	for _, u := range plan.InfeasibleRequests {
		if u.Reason.Code == model.TooMany {
			u.Count = 1
			delete(taken, Describe(u.Request))
		}
	}
	for _, u := range plan.InfeasibleGangRequests {
		if u.Reason.Code == model.TooMany {
			delete(taken, u.ID)
		}
	}
	return taken
}

// TestAllDemandHasItsTurn although nothing is served and other demand comes and goes between the plans.
func TestAllDemandHasItsTurn(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		count := 100 + random.IntN(300)
		stays := ownResources(0, count)
		gangs := differentGangs(random.IntN(60))
		all := oneGroup(ownResources(0, 2000), 0)
		missing := map[string]bool{}
		for _, r := range stays {
			missing[Describe(r)] = true
		}
		for _, g := range gangs {
			missing[g.ID] = true
		}
		s, fewest := all, count
		for cycle := 1; len(missing) > 0; cycle++ {
			s.Requests = append(ownResources(1000+random.IntN(900), random.IntN(100)), stays...)
			s.Gangs = gangs
			random.Shuffle(len(s.Requests), func(i, k int) { s.Requests[i], s.Requests[k] = s.Requests[k], s.Requests[i] })
			plan := Compute(s, little)
			taken := takenOn(s, plan)
			for name := range taken {
				delete(missing, name)
			}
			if plan.Deferred == nil {
				t.Fatalf("seed %d: all of %d requests and %d gangs are planned at once; the test needs more", seed, len(s.Requests), len(gangs))
			}
			fewest = min(fewest, len(taken))
			if most := (count+100)/16 + len(gangs)/16 + 3; cycle > most {
				t.Fatalf("seed %d: after %d plans, %d of %d requests and gangs had no turn; plans take on %d or more", seed, cycle, len(missing), count+len(gangs), fewest)
			}
			s.Turn = plan.Deferred.Next
		}
	}
}

// idleNodes adds nodes that are idle for longer than the timeout.
func idleNodes(s *Snapshot, resources ...raydemand.Bundle) {
	timeout := 60.0
	s.IdleTimeoutSeconds = &timeout
	for i, r := range resources {
		s.Nodes = append(s.Nodes, Node{Pod: fmt.Sprintf("idle-%d", i), Group: "g", State: Idle, IdleSeconds: 90, Total: r, Available: r})
	}
}

// TestWhatIsNotPlannedKeepsTheWorkersThatItCouldUse, and no others.
func TestWhatIsNotPlannedKeepsTheWorkersThatItCouldUse(t *testing.T) {
	s := oneGroup(ownResources(0, 300), 5)
	whole := s.Groups[0].Resources
	idleNodes(&s, whole, raydemand.Bundle{"CPU": raydemand.Whole(8)})
	var stopped []string
	for _, e := range Compute(s, little).Terminate {
		stopped = append(stopped, e.Pod)
	}
	if diff := cmp.Diff([]string{"idle-1"}, stopped); diff != "" {
		t.Errorf("stops (-want +got): %s", diff)
	}
	s.Nodes = nil
	gangs := s
	gangs.Requests = nil
	for i, r := range s.Requests {
		gangs.Gangs = append(gangs.Gangs, raydemand.Gang{ID: fmt.Sprint("g", i), Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{r.Bundle}})
	}
	for _, u := range Compute(gangs, little).InfeasibleGangRequests {
		if u.Reason.Code == model.TooMany {
			idleNodes(&gangs, u.Bundles[0])
			break
		}
	}
	plan := Compute(gangs, little)
	if len(plan.Terminate) > 0 || !strings.Contains(fmt.Sprint(plan.Groups[0].Reasons), "kept for demand that is placed on it") {
		t.Errorf("stops %v for the reasons %v", plan.Terminate, plan.Groups[0].Reasons)
	}
	s.Nodes = nil
	idleNodes(&s, whole, whole, whole)
	if plan = Compute(s, Policy{}); len(plan.Terminate) != 2 || plan.Deferred != nil {
		t.Errorf("with all of it planned, %v stop and %+v is deferred; want two of three workers to stop", plan.Terminate, plan.Deferred)
	}
}

// TestAGroupSaysThatDemandWaitsForItsTurn although the plan launches nothing of it.
func TestAGroupSaysThatDemandWaitsForItsTurn(t *testing.T) {
	s := oneGroup(ownResources(0, 300), 5)
	s.Groups = append(s.Groups, Group{Name: "other", Max: 5, NumOfHosts: 1, Resources: raydemand.Bundle{"CPU": raydemand.One}})
	room, deferred := maps.Clone(s.Groups[0].Resources), Compute(s, little)
	for _, u := range deferred.InfeasibleRequests {
		for name := range u.Bundle {
			delete(room, name)
		}
	}
	s.Nodes = []Node{{Pod: "way", Group: "g", State: Pending, Total: room}} // for what has its turn
	plan := Compute(s, little)
	if got := plan.Groups[0].Reasons[0]; got.Code != model.TooMany {
		t.Errorf("group g: %+v", got)
	}
	if got := plan.Groups[1].Reasons[0]; got.Code == model.TooMany {
		t.Errorf("group other, which could serve none of it: %+v", got)
	}
}

// TestAPlanTakesOnABoundedNumberOfShapes of demand of each kind: 200, or a twentieth of very many.
func TestAPlanTakesOnABoundedNumberOfShapes(t *testing.T) {
	for shapes, want := range map[int]int{200: 200, 300: 200, 2000: 200, 8000: 400} {
		s := Snapshot{LaunchConfigCheckDisabled: true, Groups: []Group{{Name: "g", Max: 10, NumOfHosts: 1, Resources: bundleOf(64, 8, 256)}}}
		for kind, s := range inEachWay(s, manyShapes(shapes)) {
			deferred := 0
			if plan := Compute(s, Policy{}); plan.Deferred != nil {
				deferred = plan.Deferred.Shapes
			}
			// What has room on the pods that others are launched for needs no turn, so fewer are deferred.
			if most := shapes - want; deferred > most || most > 0 && deferred < most/2 {
				t.Errorf("%d shapes, %s: %d are deferred, want about %d", shapes, kind, deferred, most)
			}
		}
	}
}

// ofEachKind returns a snapshot with requests, as demand of each kind, and one with all kinds.
func ofEachKind(s Snapshot, requests []raydemand.Request) map[string]Snapshot {
	kinds := inEachWay(s, requests)
	waiting, gangs, all := s, s, s
	waiting.Requests = requests
	for i, r := range requests {
		bundles := []raydemand.Bundle{r.Bundle, requests[(7*i+1)%len(requests)].Bundle}
		gangs.Gangs = append(gangs.Gangs, raydemand.Gang{ID: fmt.Sprintf("g%05d", i), Strategy: raydemand.Pack, Bundles: bundles})
	}
	all.Requests, all.Gangs, all.Constraint = requests, gangs.Gangs, requests
	all.KeptResources, all.OwnedRequests = requests, kinds["owners"].OwnedRequests
	kinds["requests"], kinds["gangs"], kinds["all"] = waiting, gangs, all
	return kinds
}

// TestGangsCountAsManyShapesAsTheyHaveDifferentBundles: a plan takes on at least one gang.
func TestGangsCountAsManyShapesAsTheyHaveDifferentBundles(t *testing.T) {
	for bundles, want := range map[int]int{100: 2, 300: 1} {
		s, requests := fleetOf(20), manyShapes(10*bundles)
		s.LaunchConfigCheckDisabled = true
		for g := range 10 {
			gang := raydemand.Gang{ID: fmt.Sprint("g", g), Strategy: raydemand.Pack}
			for k := range bundles {
				gang.Bundles = append(gang.Bundles, requests[g*bundles+k].Bundle)
			}
			s.Gangs = append(s.Gangs, gang)
		}
		plan := Compute(s, Policy{})
		if plan.Deferred == nil || plan.Deferred.Gangs != 10-want {
			t.Errorf("of gangs of %d bundles, %+v is deferred, want all but %d", bundles, plan.Deferred, want)
		}
	}
}

// inTurns applies plans until one defers nothing and launches nothing, or until as many have passed, and returns how
// many it made, and the price of what they launched, or the number of pods without prices. The last plan is repeated by
// the next one.
func inTurns(t testing.TB, s Snapshot, policy Policy, most int) (plans int, cost float64, last Plan) {
	t.Helper()
	for plans < most {
		last = Compute(s, policy)
		plans, cost = plans+1, cost+model.AmountOr(last.Price, float64(pods(last)))
		s, s.Turn = applied(s, last, 0), ""
		if last.Deferred != nil {
			s.Turn = last.Deferred.Next
		} else if pods(last) == 0 {
			break
		}
	}
	return plans, cost, last
}

// TestPlansInTurnsAddUp: what earlier plans launched is taken, so plans in turns launch hardly more than one plan.
func TestPlansInTurnsAddUp(t *testing.T) {
	s := fleetOf(20)
	s.LaunchConfigCheckDisabled = true
	for i := range s.Groups {
		price := s.Groups[i].Resources["CPU"].Float() + 14*s.Groups[i].Resources["GPU"].Float()
		s.Groups[i].Price = &price
	}
	for kind, s := range ofEachKind(s, manyShapes(600)) {
		if kind == "all" {
			continue
		}
		_, once, _ := inTurns(t, s, Policy{Shapes: 600}, 9)
		for _, policy := range []Policy{{}, little} {
			plans, cost, last := inTurns(t, s, policy, 200)
			if last.Deferred != nil || pods(last) > 0 || len(last.InfeasibleRequests)+len(last.InfeasibleRequestResources) > 0 {
				t.Errorf("%s: after %d plans, %+v is deferred and %v is launched", kind, plans, last.Deferred, last.Launch)
			}
			if plans < 3 || cost > 1.02*once {
				t.Errorf("%s: %d plans in turns cost %v, and one plan %v", kind, plans, cost, once)
			}
		}
	}
}

func pods(plan Plan) (all int) {
	for _, n := range plan.Launch {
		all += n
	}
	return all
}

// inEachWay returns the snapshots that request the same in each way in which there is no turn by itself: within Ray,
// over REST, and by owners.
func inEachWay(s Snapshot, requests []raydemand.Request) map[string]Snapshot {
	within, plain, owned := s, s, s
	within.Constraint, plain.KeptResources = requests, requests
	for from := 0; from < len(requests); from += 5 {
		some := requests[from:min(from+5, len(requests))]
		owned.OwnedRequests = append(owned.OwnedRequests, raydemand.Owned{ID: fmt.Sprintf("r%03d", from), Owner: "ann", Requests: some})
	}
	return map[string]Snapshot{"request_resources": within, "REST": plain, "owners": owned}
}

// deferredKinds returns the requests of calls that are too much for a plan.
func deferredKinds(plan Plan) map[string]bool {
	deferred := map[string]bool{}
	for _, u := range plan.InfeasibleRequestResources {
		if u.Reason.Code == model.TooMany {
			u.Count = 1
			deferred[Describe(u.Request)] = true
		}
	}
	return deferred
}

// TestAllOfACallOfRequestResourcesHasItsTurn and is launched for: each of five groups has a part of the resources.
func TestAllOfACallOfRequestResourcesHasItsTurn(t *testing.T) {
	requests := ownResources(0, 400)
	for name, s := range inEachWay(Snapshot{LaunchConfigCheckDisabled: true}, requests) {
		for g := range 5 {
			part := oneGroup(requests[80*g:80*(g+1)], 5000).Groups[0]
			part.Name = fmt.Sprint("g", g)
			s.Groups = append(s.Groups, part)
		}
		first := Compute(s, little)
		if kinds := deferredKinds(first); len(kinds) < 100 || first.Deferred == nil || first.Deferred.Shapes != len(kinds) {
			t.Fatalf("%s: %+v is deferred, and %d bundles wait for their turn; the test needs more", name, first.Deferred, len(kinds))
		}
		plans, launched, last := inTurns(t, s, little, 12)
		if launched != 5 || last.Deferred != nil || len(last.InfeasibleRequestResources) > 0 {
			t.Errorf("%s: %d plans launch %v pods, %+v is deferred, and %d are unmet", name, plans, launched, last.Deferred, len(last.InfeasibleRequestResources))
		}
	}
}

// TestACallWithAnImpossibleBundleLaunchesNothing in any turn, because it is served as a whole or not at all.
func TestACallWithAnImpossibleBundleLaunchesNothing(t *testing.T) {
	requests := ownResources(0, 400)
	s := oneGroup(requests, 5000)
	s.Constraint = append(requests, raydemand.Request{Bundle: raydemand.Bundle{"absent": raydemand.One}, Count: 1})
	s.Requests = nil
	for turn := range 16 {
		s.Turn = fmt.Sprintf("%x000000000000000", turn)
		if plan := Compute(s, little); pods(plan) > 0 {
			t.Errorf("turn %s: launches %v", s.Turn, plan.Launch)
		}
	}
}

// TestWhatIsNotPlannedOfACallKeepsTheWorkersThatItCouldUse although they are idle.
func TestWhatIsNotPlannedOfACallKeepsTheWorkersThatItCouldUse(t *testing.T) {
	requests := ownResources(0, 400)
	for name, s := range inEachWay(oneGroup(requests, 5000), requests) {
		s.Requests = nil
		deferred := deferredKinds(Compute(s, little))
		idle := []raydemand.Bundle{{"CPU": raydemand.One}} // which nothing could use
		for _, r := range requests {
			if deferred[Describe(r)] {
				idle = append(idle, r.Bundle)
			}
		}
		if len(idle) < 100 {
			t.Fatalf("%s: only %d bundles are deferred", name, len(idle)-1)
		}
		idleNodes(&s, idle...)
		plan := Compute(s, little)
		var stopped []string
		for _, e := range plan.Terminate {
			stopped = append(stopped, e.Pod)
		}
		if diff := cmp.Diff([]string{"idle-0"}, stopped); diff != "" {
			t.Errorf("%s: stops (-want +got): %s", name, diff)
		}
	}
}

// TestARequestThatIsAllOrNothingHasItsTurnAsAWhole: it launches nothing that a part of it could use.
func TestARequestThatIsAllOrNothingHasItsTurnAsAWhole(t *testing.T) {
	s := Snapshot{LaunchConfigCheckDisabled: true, Groups: []Group{{Name: "g", Max: 1, NumOfHosts: 1, Resources: raydemand.Bundle{"CPU": raydemand.Whole(4)}}}}
	for i, cpus := range []int64{3, 2, 1} {
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: fmt.Sprint("r", i), Owner: "ann", AllOrNothing: true, Requests: []raydemand.Request{
			{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(cpus)}, Count: 1}, {Bundle: raydemand.Bundle{"CPU": raydemand.Whole(cpus) + raydemand.One/2}, Count: 1}}})
	}
	plans, launched, last := inTurns(t, s, Policy{Shapes: 1}, 9)
	if states := statesOf(last); launched != 1 || strings.Count(states, "Capped") != 2 || !strings.Contains(states, "r2=Waiting") {
		t.Errorf("%d plans launch %v: %s", plans, launched, states)
	}
	s.OwnedRequests = s.OwnedRequests[:2]
	if _, launched, _ := inTurns(t, s, Policy{Shapes: 1}, 9); launched != 0 {
		t.Errorf("%v pods are launched for requests that are never served", launched)
	}
}

// TestRequestsThatAreAllOrNothingHaveTurnsOfTheirOwn: many of them exceed what a plan takes on, and one for which there
// is no room defers none that has room.
func TestRequestsThatAreAllOrNothingHaveTurnsOfTheirOwn(t *testing.T) {
	s := oneGroup(ownResources(0, 40), 2)
	s.Nodes = []Node{{Pod: "q", Group: "g", State: Idle, Total: raydemand.Bundle{"q": raydemand.One}, Available: raydemand.Bundle{"q": raydemand.One}}}
	owned := func(id string, bundle raydemand.Bundle, counts ...int64) {
		of := raydemand.Owned{ID: id, Owner: "ann", AllOrNothing: true}
		for i, count := range counts {
			bundle := maps.Clone(bundle)
			bundle["CPU"] += raydemand.Amount(i)
			of.Requests = append(of.Requests, raydemand.Request{Bundle: bundle, Count: count})
		}
		s.OwnedRequests = append(s.OwnedRequests, of)
	}
	owned("has room", raydemand.Bundle{"q": raydemand.One}, 1)
	for i := range 10 {
		owned(fmt.Sprint("lacks ", i), raydemand.Bundle{"CPU": raydemand.Whole(int64(i%7) + 1)}, 9, 9, 9, 9)
	}
	for turn := range 8 {
		s.Turn = fmt.Sprintf("%x000000000000000", 2*turn)
		plan := Compute(s, little)
		if states := statesOf(plan); !strings.Contains(states, "has room=Satisfied") || plan.Deferred == nil || plan.Deferred.Shapes <= 40 {
			t.Errorf("turn %s: %s; deferred %+v", s.Turn, states, plan.Deferred)
		}
	}
}

// TestGangsInTurnsDoNotShareWhatIsLaunched: the second one finds no room on the pods of the first.
func TestGangsInTurnsDoNotShareWhatIsLaunched(t *testing.T) {
	s := Snapshot{LaunchConfigCheckDisabled: true, Groups: []Group{{Name: "g", Max: 9, NumOfHosts: 1, Resources: raydemand.Bundle{"CPU": raydemand.Whole(4)}}}}
	for i, cpus := range []int64{3, 2} {
		s.Gangs = append(s.Gangs, raydemand.Gang{ID: fmt.Sprint("a", i), Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{
			{"CPU": raydemand.Whole(4)}, {"CPU": raydemand.Whole(cpus)}}})
	}
	if plans, launched, last := inTurns(t, s, Policy{Shapes: 2}, 9); launched != 4 || last.Deferred != nil {
		t.Errorf("%d plans launch %v pods, and %+v is deferred", plans, launched, last.Deferred)
	}
}

// TestWhatIsAssumedHasItsTurn although more waits than one plan takes on.
func TestWhatIsAssumedHasItsTurn(t *testing.T) {
	s := oneGroup(ownResources(0, 100), 5)
	for name, q := range map[string]Question{
		"a request": {Demand: &raydemand.Request{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(7)}, Count: 1}},
		"a gang":    {AskedGang: &raydemand.Gang{Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{{"CPU": raydemand.Whole(7)}, {"CPU": raydemand.Whole(6)}}}},
	} {
		for turn := range 8 {
			s.Turn = fmt.Sprintf("%x000000000000000", 2*turn)
			if e, err := Explain(s, little, q); err != nil || !strings.Contains(e.Message, ": 1 asked, 1 ") {
				t.Errorf("%s, turn %s: %+v (%v)", name, s.Turn, e.Reason, err)
			}
		}
	}
}

// TestTurnsComeToRest: after all demand has had its turns, plans launch nothing and stop nothing, whatever is deferred.
func TestTurnsComeToRest(t *testing.T) {
	launched, stopped, deferred := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.Custom(drawSnapshot), rapid.Custom(drawOwned)).Draw(t, "snapshot")
		const enough, rest = 80, 25 // more than there are turns
		quiet := 0
		for n := 0; quiet < rest; n++ {
			plan := Compute(s, Policy{Shapes: 2})
			if n == enough {
				t.Fatalf("plan %d launches %v and stops %v: %s", n, plan.Launch, plan.Terminate, compact(s))
			}
			if quiet++; pods(plan)+len(plan.Terminate) > 0 {
				quiet = 0
			}
			s, s.Turn = applied(s, plan, n), ""
			launched, stopped = launched+pods(plan), stopped+len(plan.Terminate)
			if plan.Deferred != nil {
				s.Turn, deferred = plan.Deferred.Next, deferred+1
			}
		}
	})
	if launched == 0 || stopped == 0 || deferred == 0 {
		t.Errorf("%d pods are launched, %d are stopped and %d plans defer demand: too few for this test", launched, stopped, deferred)
	}
}
