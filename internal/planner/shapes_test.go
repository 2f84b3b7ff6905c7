package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"

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
