package planner

import (
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func gpusOf(flavor string, amount int64, takes raydemand.Bundle) Quota {
	return Quota{
		Name: "flavor " + flavor + " of ClusterQueue q", Resource: "nvidia.com/gpu",
		Amount: raydemand.Whole(amount), PodTakes: takes,
	}
}

func TestDemandBeyondAQuotaIsServedInPart(t *testing.T) {
	s := Snapshot{
		Groups: []Group{pooled("g", 1)}, Demand: gpuRequests(1, 6),
		Quotas: []Quota{gpusOf("default", 4, raydemand.Bundle{"g": raydemand.One})},
	}
	plan := Compute(s, Policy{})
	if diff := gocmp.Diff(map[string]int{"g": 4}, plan.Launch); diff != "" {
		t.Error(diff)
	}
	const why = "group g is at its quota: flavor default of ClusterQueue q has 4 nvidia.com/gpu, 0 left; one pod takes 1"
	if len(plan.InfeasibleRequests) != 1 || plan.InfeasibleRequests[0].Count != 2 ||
		plan.InfeasibleRequests[0].Reason != (Reason{Code: Capped, Message: why}) {
		t.Errorf("unmet: %+v, want 2 because %s", plan.InfeasibleRequests, why)
	}

	s.Nodes = []Node{{Pod: "g-1", Group: "g", State: Running, Total: s.Groups[0].Resources, Available: raydemand.Bundle{}}}
	s.Quotas[0].Amount, s.Quotas[0].Why = raydemand.One, "insufficient unused quota"
	plan = Compute(s, Policy{})
	if reason := plan.Groups[0].Reasons[0]; len(plan.Launch) > 0 || reason.Code != CodeQuota || reason.Message != "group g is at its quota: "+
		"flavor default of ClusterQueue q has 1 nvidia.com/gpu, 0 left; one pod takes 1 (insufficient unused quota)" {
		t.Errorf("launches %v because %+v", plan.Launch, reason)
	}
}

func TestAQuotaInBytesIsShownInUnitsOfMemory(t *testing.T) {
	quota := gpusOf("default", 0, raydemand.Bundle{"g": raydemand.Whole(4 << 30)})
	quota.Resource, quota.Amount = "limits.memory", raydemand.Whole(3<<30)
	plan := Compute(Snapshot{Groups: []Group{pooled("g", 1)}, Demand: gpuRequests(1, 1), Quotas: []Quota{quota}}, Policy{})
	const why = "has 3 GiB limits.memory, 3 GiB left; one pod takes 4 GiB"
	if len(plan.InfeasibleRequests) != 1 || !strings.Contains(plan.InfeasibleRequests[0].Reason.Message, why) {
		t.Errorf("unmet: %+v, want %q", plan.InfeasibleRequests, why)
	}
}

func TestDemandBeyondTheQuotaOfOneGroupGoesToTheNext(t *testing.T) {
	od, spot := pooled("od", 1), pooled("spot", 1)
	od.Priority = 1
	s := Snapshot{
		Groups: []Group{od, spot}, Demand: gpuRequests(1, 5),
		Quotas: []Quota{gpusOf("od", 2, raydemand.Bundle{"od": raydemand.One}), gpusOf("spot", 4, raydemand.Bundle{"spot": raydemand.One})},
	}
	if diff := gocmp.Diff(map[string]int{"od": 2, "spot": 3}, Compute(s, Policy{}).Launch); diff != "" {
		t.Error(diff)
	}
}

func TestPodsThatWereGivenUpLeaveTheirQuota(t *testing.T) {
	s := Snapshot{
		Groups: []Group{pooled("g", 1)}, Demand: gpuRequests(1, 3),
		Quotas: []Quota{gpusOf("default", 3, raydemand.Bundle{"g": raydemand.One})},
	}
	s.Groups[0].Replicas = new(2)
	for i := range 2 {
		s.Nodes = append(s.Nodes, Node{Pod: fmt.Sprintf("g-%d", i), Group: "g", State: AllocationTimeout})
	}
	if diff := gocmp.Diff(map[string]int{"g": 3}, Compute(s, Policy{}).Launch); diff != "" {
		t.Error(diff)
	}
}

// TestNoPlanExceedsAQuota draws groups of which several take from the same quotas, with requests and gangs.
func TestNoPlanExceedsAQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Snapshot
		for i := range rapid.IntRange(1, 4).Draw(t, "groups") {
			g := pooled(fmt.Sprintf("g%d", i), rapid.Int64Range(1, 3).Draw(t, "gpus"))
			g.NumOfHosts, g.Min = rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "hosts"), rapid.IntRange(0, 2).Draw(t, "min")
			g.Labels = map[string]string{"kind": fmt.Sprint(i)}
			s.Groups = append(s.Groups, g)
			s.Requests = append(s.Requests, raydemand.Request{
				Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: rapid.Int64Range(0, 6).Draw(t, "own"),
				Selectors: []raydemand.Selector{selectorOf("kind", fmt.Sprint(i))},
			})
		}
		s.Requests = append(s.Requests, gpuRequests(1, rapid.Int64Range(0, 9).Draw(t, "any")).Requests...)
		if n := rapid.IntRange(0, 4).Draw(t, "bundles"); n > 0 {
			gang := raydemand.Gang{ID: "gang", Strategy: raydemand.Pack}
			for range n {
				gang.Bundles = append(gang.Bundles, raydemand.Bundle{"GPU": raydemand.One})
			}
			s.Gangs = []raydemand.Gang{gang}
		}
		for k := range rapid.IntRange(1, 3).Draw(t, "quotas") {
			quota := gpusOf(fmt.Sprint(k), rapid.Int64Range(0, 12).Draw(t, "amount"), raydemand.Bundle{})
			for i := range s.Groups {
				if n := rapid.Int64Range(0, 3).Draw(t, "takes"); n > 0 {
					quota.PodTakes[s.Groups[i].Name] = raydemand.Whole(n)
				}
			}
			s.Quotas = append(s.Quotas, quota)
		}
		plan := Compute(s, Policy{})
		for _, quota := range s.Quotas {
			var sum raydemand.Amount
			for group, pods := range plan.Launch {
				sum += quota.PodTakes[group].Times(int64(pods))
			}
			if sum > quota.Amount {
				t.Fatalf("launches %v exceed %+v", plan.Launch, quota)
			}
		}
	})
}
