package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// manyShapes are all different.
func manyShapes(count int) []raydemand.Request {
	random := rand.New(rand.NewPCG(5, 6))
	requests := make([]raydemand.Request, count)
	for i := range requests {
		requests[i] = raydemand.Request{Count: 1 + random.Int64N(3), Bundle: raydemand.Bundle{
			"CPU": raydemand.Amount(1 + random.Int64N(160_000)), "memory": raydemand.Whole(int64(i) + random.Int64N(32<<30)),
		}}
		if random.IntN(4) == 0 {
			gpus := raydemand.Amount(1 + random.IntN(30_000))
			if gpus > raydemand.One {
				gpus -= gpus % raydemand.One
			}
			requests[i].Bundle["GPU"] = gpus
		}
	}
	return requests
}

// notShort skips slow tests where tests are to be short.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("so many shapes take long")
	}
}

func TestOfVeryManyShapesEachIsAccountedFor(t *testing.T) {
	notShort(t)
	s := halfFull(plannertest.Fleet(20), 500)
	s.LaunchConfigCheckDisabled = true
	for i := range s.Groups {
		s.Groups[i].Max = 100
	}
	s.Requests = manyShapes(5000)
	for i := range s.Requests {
		switch i % 100 {
		case 0:
			s.Requests[i].Selectors = []raydemand.Selector{plannertest.Parse("zone", fmt.Sprint(i))}
		case 1:
			s.Requests[i].Bundle["CPU"] = raydemand.Whole(1000)
		}
	}
	plan := Compute(s, Policy{})
	asked, unmet := byKind(s.Requests), unmetByKind(plan)
	got, left := map[string]int64{}, map[string]int64{}
	var impossible int64
	for _, d := range plan.Summary {
		if all := d.Served + d.Waiting + d.Launching + d.Impossible + d.Capped + d.Closed + d.CoolingDown; all != d.Asked || d.Served < 0 {
			t.Errorf("%+v adds up to %d", d, all)
		}
		kind := Describe(raydemand.Request{Bundle: d.Resources, Selectors: d.Selectors})
		got[kind] += d.Asked
		if n := d.Impossible + d.Capped; n > 0 {
			left[kind] += n
		}
		impossible += d.Impossible
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("asked (-want +got): %s", diff)
	}
	if diff := cmp.Diff(unmet, left); diff != "" {
		t.Errorf("unmet (-want +got): %s", diff)
	}
	var want int64
	for i, r := range s.Requests {
		if i%100 < 2 {
			want += r.Count
		}
	}
	if impossible != want {
		t.Errorf("%d are impossible, want the %d that are", impossible, want)
	}
}

// TestAStreamOfLargeRequestsIsServedToTheLast uses up all trials: each of the requests takes a search of its own.
func TestAStreamOfLargeRequestsIsServedToTheLast(t *testing.T) {
	var s Snapshot
	for i := range 60 {
		name := fmt.Sprintf("r%02d", i)
		s.Groups = append(s.Groups, Group{Name: name, Resources: raydemand.Bundle{name: 100 * raydemand.One}, Max: 1, NumOfHosts: 1})
		s.OwnedRequests = append(s.OwnedRequests, raydemand.Owned{ID: name, Owner: "o", Requests: []raydemand.Request{{Bundle: raydemand.Bundle{name: raydemand.One}, Count: 10_000}}})
	}
	for _, r := range Compute(s, Policy{}).Requests {
		if r.Waiting != 100 || r.State != raydemand.RequestCapped || r.Reason.Code != Capped {
			t.Errorf("%s is %s (%s) and has %d of the 100 that its group can hold", r.ID, r.State, r.Reason.Code, r.Waiting)
		}
	}
}

// TestTheRestOfAProgramIsLaunchedGreedily has as many shapes and groups as one program may have, so that its work is
// cut short.
func TestTheRestOfAProgramIsLaunchedGreedily(t *testing.T) {
	s := plannertest.Fleet(120)
	s.Requests = plannertest.RandomShapes(60, 50)
	if plan := Compute(s, Policy{}); unserved(plan) > 0 {
		t.Errorf("%d bundles are not served", unserved(plan))
	}
}
