package landing

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// failedClaim returns a failed launch of a pool whose claim allowed these numbers of capacity types and instance types.
func failedClaim(pool string, capacityTypes, types int) failedLaunch {
	values := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	claim := launchedClaim(pool+"-x", 1)
	claim.Pool, claim.Launched, claim.Allocatable = pool, false, nil
	claim.Template.Requirements = []Requirement{
		{Key: "karpenter.sh/capacity-type", Operator: "In", Values: values(capacityTypes)},
		{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: values(types)},
	}
	return failedLaunch{Claim: claim, At: claimNoon.Add(time.Second)}
}

func TestAGroupIsOutOfStockWhenTheLaunchesOfAllItsNodePoolsFailed(t *testing.T) {
	may := func(n int64) *int64 { return &n }
	one := []PoolPods{{Pool: "g1", Provisioned: true}}
	two := append(one[:1:1], PoolPods{Pool: "g2", Provisioned: true})
	first, second := failedClaim("g1", 1, 2), failedClaim("g2", 1, 60)
	both := FailedLaunches{"g1": first, "g2": second}
	const only = "g1"
	for name, c := range map[string]struct {
		gpus   int64
		fits   []PoolPods
		failed FailedLaunches
		after  time.Duration
		want   string
	}{
		"the only NodePool":                 {1, one, both, 0, only},
		"both NodePools":                    {1, two, both, 0, "g1 g2"},
		"another NodePool may launch":       {1, two, FailedLaunches{"g1": first}, 0, ""},
		"another NodePool is at its limit":  {1, append(one[:1:1], PoolPods{Pool: "g2", Provisioned: true, MayAddPods: may(0)}), both, 0, only},
		"a pool of another node autoscaler": {1, append(one[:1:1], PoolPods{Pool: "g2", MayAddPods: may(3)}), both, 0, ""},
		"nothing may be added anywhere":     {1, []PoolPods{{Pool: "g1", Provisioned: true, MayAddPods: may(0)}}, both, 0, ""},
		"spot first, then on-demand":        {1, one, FailedLaunches{"g1": failedClaim("g1", 2, 2)}, 0, ""},
		"more types than one launch tries":  {1, one, FailedLaunches{"g1": failedClaim("g1", 1, 61)}, 0, ""},
		"a claim for smaller pods":          {2, one, both, 0, ""},
		"stock is looked at again":          {1, one, both, stockMemory + time.Second, ""},
		"before the pods were there":        {1, one, both, -2 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			since := claimNoon
			if c.after < 0 {
				since = since.Add(-c.after)
			}
			waiting := WaitingPods{Shape: gpuPod(c.gpus, "g1"), Pods: 1, Since: since}
			got := OutOfStock(claimNoon.Add(time.Second+max(c.after, 0)), waiting, c.fits, c.failed)
			if names := strings.Join(got, " "); names != c.want {
				t.Errorf("out of stock: %q, want %q", names, c.want)
			}
		})
	}
}

func TestClaimsOfOneRoundThatFailedAreNotNewsAgain(t *testing.T) {
	a, b := failedClaim("g1", 1, 2).Claim, failedClaim("g1", 1, 2).Claim
	a.Name, b.Name = "g1-a", "g1-b"
	launched := a
	launched.Name, launched.Launched, launched.LaunchedAt = "g1-c", true, claimNoon.Add(2*time.Second)
	failed := FailedLaunches{}
	if !failed.Note(claimNoon, a) || !failed.Note(claimNoon, b) {
		t.Fatal("the failures are no news")
	}
	failed.Void(&launched)
	for i := range 4 {
		if now := claimNoon.Add(time.Duration(3+i) * time.Second); failed.Note(now, a) || failed.Note(now, b) {
			t.Errorf("the same failures are news again: the pool counts as out of stock since %v, though it got a machine", failed["g1"].At)
		}
	}
	later := a
	later.Name, later.CreatedAt = "g1-0", a.CreatedAt.Add(10*time.Second)
	if !failed.Note(claimNoon.Add(11*time.Second), later) {
		t.Error("the failure of the next round is no news")
	}
}
