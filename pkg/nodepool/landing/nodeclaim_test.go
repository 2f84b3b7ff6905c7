package landing

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var claimNoon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func gpusOf(n int64) Quantities {
	return Quantities{"nvidia.com/gpu": raydemand.Whole(n), "cpu": raydemand.Whole(4 * n)}
}

// launchedClaim returns a claim of NodePool g1 with this many GPUs.
func launchedClaim(name string, gpus int64) NodeClaim {
	claim := NodeClaim{Name: name, Pool: "g1", Launched: true, CreatedAt: claimNoon, LaunchedAt: claimNoon,
		Requests: gpusOf(1), Allocatable: gpusOf(gpus).Plus(Quantities{"pods": raydemand.Whole(110)}),
		Template: NodeTemplate{Labels: map[string]string{"karpenter.sh/nodepool": "g1", "pool": "g1", "kubernetes.io/hostname": name}}}
	claim = claim.Classed()
	return claim
}

func launchedClaims(count int, gpus int64) (claims []NodeClaim) {
	for i := range count {
		claims = append(claims, launchedClaim(fmt.Sprintf("g1-%03d", i), gpus))
	}
	return claims
}

func gpuPod(gpus int64, pool string) *PodShape {
	return &PodShape{Requests: gpusOf(gpus), Selector: map[string]string{"pool": pool}}
}

// onlyCounts compares the numbers of places; TestPlacesSayHowFarTheirMachinesAre compares the rest.
var onlyCounts = cmpopts.IgnoreFields(Incoming{}, "Places")

func TestPlacesSayHowFarTheirMachinesAre(t *testing.T) {
	at := func(seconds int) time.Time { return claimNoon.Add(time.Duration(seconds) * time.Second) }
	requested, launched, late, registered, ready := launchedClaim("a", 1), launchedClaim("b", 2), launchedClaim("c", 1), launchedClaim("d", 1), launchedClaim("e", 1)
	requested.Launched, requested.Allocatable, requested.CreatedAt = false, nil, at(9)
	launched.LaunchedAt = at(1)
	late.CreatedAt, late.LaunchedAt = at(5), at(6)
	registered.Registered, registered.RegisteredAt, registered.Node = true, at(3), "node-d"
	ready.Registered, ready.NodeReady, ready.NodeReadyAt, ready.Lacks = true, true, at(4), "nvidia.com/gpu is missing"
	twin := launched
	twin.Name = "bb"
	got := PlaceOnClaims(at(10), []NodeClaim{requested, launched, twin, late, registered, ready}, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 7}, {Shape: gpuPod(1, "g1"), Pods: 9}})
	want := []Incoming{
		{Launched: 7, Places: []Coming{
			{Pods: 1, Progress: NodeReady, Since: at(4), Lacks: "nvidia.com/gpu is missing"},
			{Pods: 1, Progress: Registered, Since: at(3)},
			{Pods: 4, Progress: Launched, Since: at(1)},
			{Pods: 1, Progress: Launched, Since: at(6)},
		}},
		{Requested: 1, Places: []Coming{{Pods: 1, Progress: Requested, Since: at(9)}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestNodeClaimsAreCountedByWhatTheyHold(t *testing.T) {
	deleting, complete := launchedClaim("a", 8), launchedClaim("b", 8)
	deleting.Deleting, complete.Initialized = true, true
	requested := launchedClaim("c", 8)
	requested.Launched, requested.Allocatable = false, nil
	registered := launchedClaim("d", 4)
	registered.Node = "node-d"
	tainted := launchedClaim("e", 8)
	tainted.Template.Taints = []sharing.Taint{{Key: "team", Value: "a", Effect: sharing.NoSchedule}}
	tainted = tainted.Classed()
	for name, c := range map[string]struct {
		claims  []NodeClaim
		after   time.Duration
		bound   map[string]Quantities
		waiting []WaitingPods
		want    []Incoming
	}{
		"one pod on each":                        {launchedClaims(20, 1), 0, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 20}}, []Incoming{{Launched: 20}}},
		"several pods on one":                    {launchedClaims(2, 8), 0, nil, []WaitingPods{{Shape: gpuPod(2, "g1"), Pods: 20}}, []Incoming{{Launched: 8}}},
		"no more than wait":                      {launchedClaims(4, 8), 0, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{Launched: 3}}},
		"another pool's":                         {launchedClaims(4, 8), 0, nil, []WaitingPods{{Shape: gpuPod(1, "g2"), Pods: 3}}, []Incoming{{}}},
		"too small for the pod":                  {launchedClaims(4, 1), 0, nil, []WaitingPods{{Shape: gpuPod(2, "g1"), Pods: 3}}, []Incoming{{}}},
		"two groups share claims":                {launchedClaims(3, 2), 0, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 4}, {Shape: gpuPod(1, "g1"), Pods: 4}}, []Incoming{{Launched: 4}, {Launched: 2}}},
		"going and complete ones bring nothing":  {[]NodeClaim{deleting, complete}, 0, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{}}},
		"requested ones hold what they are for":  {[]NodeClaim{requested}, 0, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{Requested: 1}}},
		"requested ones give up after 5 minutes": {[]NodeClaim{requested}, 5 * time.Minute, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{}}},
		"launched ones count for 15 minutes":     {launchedClaims(1, 8), 15*time.Minute - 1, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{Launched: 3}}},
		"and then no more":                       {launchedClaims(1, 8), 15 * time.Minute, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{}}},
		"a registered one less what is bound":    {[]NodeClaim{registered}, 0, map[string]Quantities{"node-d": gpusOf(3)}, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{Launched: 1}}},
		"a taint that is not tolerated":          {[]NodeClaim{tainted}, 0, nil, []WaitingPods{{Shape: gpuPod(1, "g1"), Pods: 3}}, []Incoming{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := PlaceOnClaims(claimNoon.Add(c.after), c.claims, c.bound, c.waiting)
			if diff := cmp.Diff(c.want, got, onlyCounts); diff != "" {
				t.Errorf("coming (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsWithFewClaimsGoBeforePodsThatFitAnywhere(t *testing.T) {
	claims := launchedClaims(2, 1)
	for i := range 2 {
		claim := launchedClaim(fmt.Sprint("cpu-", i), 1)
		delete(claim.Allocatable, "nvidia.com/gpu")
		claim.Template.Labels = map[string]string{"pool": "cpu"}
		claim = claim.Classed()
		claims = append(claims, claim)
	}
	anywhere := &PodShape{Requests: Quantities{"cpu": raydemand.Whole(4)}}
	got := PlaceOnClaims(claimNoon, claims, nil, []WaitingPods{{Shape: anywhere, Pods: 2}, {Shape: gpuPod(1, "g1"), Pods: 2}})
	if diff := cmp.Diff([]Incoming{{Launched: 2}, {Launched: 2}}, got, onlyCounts); diff != "" {
		t.Errorf("coming (-want +got):\n%s", diff)
	}
}
