package reclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fullPool is a taker whose pods have so many GPUs, on full nodes of eight GPUs, and what another RayCluster offers there:
// workers of one GPU each, eight on each node.
func fullPool(nodes int, gpus, demand int64) (*addon.Cycle, []giveback.Offer) {
	shape := func(n int64) landing.Quantities { return landing.Quantities{"nvidia.com/gpu": raydemand.Whole(n)} }
	var all []landing.Node
	var offers []giveback.Offer
	for k := range 8 { // the offers of a node are not together
		for i := range nodes {
			name := fmt.Sprintf("n%04d", i)
			if k == 0 {
				all = append(all, landing.Node{Name: name, Pool: "p", Ready: true, Allocatable: shape(8),
					Use: &landing.Use{Requests: shape(8)}})
			}
			offers = append(offers, giveback.Offer{Group: "gpu", GPUs: 1,
				Workers: []giveback.OfferedWorker{{Pod: fmt.Sprintf("%s-%d", name, k), Node: name, Takes: shape(1)}}})
		}
	}
	none := int64(0)
	stock := landing.NodesOf(all, landing.Pools{Rooms: []landing.Room{{Pool: "p", Nodes: int64(nodes), MaxNodes: new(int64), MayAddNodes: &none}}})
	o := &addon.Cycle{}
	c := &o.View.Cluster
	c.Head.Priority, c.Stock = 1, stock
	c.Groups = []nodepool.WorkerGroup{{Name: "gpu", Max: 1000, NumOfHosts: 1, Pod: landing.PodShape{Requests: shape(gpus)},
		Resources: raydemand.Bundle{raydemand.GPU: raydemand.Whole(gpus)}}}
	c.Free(nil)
	s := planner.SnapshotOf(*c)
	s.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.Whole(gpus)}, Count: demand}}
	o.Intent.Snapshot = s
	o.Intent.Plan = planner.Compute(s, s.Policy)
	return o, offers
}

func TestTheFewestWorkersThatMakeRoomAreChosen(t *testing.T) {
	for name, c := range map[string]struct {
		gpus, demand, left int64
		pods               int64 // that have room then
		workers            int
	}{
		"one pod of one GPU":                       {1, 1, 8, 1, 1},
		"no more than is wanted":                   {1, 3, 8, 3, 3},
		"all GPUs of one node":                     {8, 1, 8, 1, 8},
		"half of a node":                           {4, 1, 8, 1, 4},
		"no more than the budget":                  {1, 20, 8, 8, 8},
		"whole pods within the budget":             {4, 3, 8, 2, 8},
		"more than the budget, if less is no room": {8, 1, 4, 1, 8},
	} {
		t.Run(name, func(t *testing.T) {
			o, offers := fullPool(3, c.gpus, c.demand)
			room := newWhatIf(o)
			if !room.short() {
				t.Fatalf("the pool is not full: %+v", o.Intent.Plan.Groups)
			}
			got := room.fewest(offers, c.left, rank{})
			if got == nil || len(got.offers) != c.workers || got.launches["gpu"] != c.pods || len(got.waiting) > 0 {
				t.Fatalf("%+v, want %d workers and room for %d pods", got, c.workers, c.pods)
			}
			nodes := map[string]int64{}
			for _, pod := range giveback.Pods(got.offers) {
				node, _, _ := strings.Cut(pod, "-")
				nodes[node]++
			}
			for node, n := range nodes {
				if n%c.gpus != 0 {
					t.Errorf("%d workers of %s go, which make room for no whole pod: %v", n, node, nodes)
				}
			}
		})
	}
	o, offers := fullPool(100, 8, 1)
	if got := newWhatIf(o).fewest(offers, 8, rank{}); got == nil || len(got.offers) != 8 {
		t.Errorf("%+v, want the workers of one of 100 nodes", got)
	}
	o, offers = fullPool(3, 8, 1)
	if got := newWhatIf(o).fewest(slices.DeleteFunc(offers, func(f giveback.Offer) bool { return strings.HasSuffix(f.Workers[0].Pod, "-0") }), 8, rank{}); got != nil {
		t.Errorf("%v, although no node can become empty", giveback.Pods(got.offers))
	}
}

func BenchmarkFewest(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			o, offers := fullPool(nodes, 1, 32)
			for b.Loop() {
				if got := newWhatIf(o).fewest(offers, 8, rank{}); got == nil || len(got.offers) != 8 {
					b.Fatal(got)
				}
			}
		})
	}
}
