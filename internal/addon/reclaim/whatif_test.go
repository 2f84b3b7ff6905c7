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
		stays              bool // a worker of the first node
	}{
		"one pod of one GPU":                       {1, 1, 8, 1, 1, false},
		"no more than is wanted":                   {1, 3, 8, 3, 3, false},
		"all GPUs of one node":                     {8, 1, 8, 1, 8, false},
		"all GPUs of the second node":              {8, 1, 8, 1, 8, true},
		"half of a node":                           {4, 1, 8, 1, 4, false},
		"no more than the budget":                  {1, 20, 8, 8, 8, false},
		"whole pods within the budget":             {4, 3, 8, 2, 8, false},
		"more than the budget, if less is no room": {8, 1, 4, 1, 8, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, offers := fullPool(3, c.gpus, c.demand)
			if c.stays {
				offers = slices.Delete(offers, 21, 22) // the eighth of n0000
			}
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
	} else if text := got.text(); strings.Count(text, ";") != 5 || !strings.HasSuffix(text, "; 3 more)") {
		t.Errorf("%s, want five names and how many more there are", text)
	}
	for k := range 64 { // a node of slices
		offers[k].Workers[0].Node = "n0000"
	}
	slice := landing.Quantities{"nvidia.com/gpu": raydemand.Whole(8) / 64}
	for k := range offers[:64] {
		offers[k].Workers[0].Takes = slice
	}
	if got := newWhatIf(o).fewest(offers[:64], 64, rank{}); got == nil || len(got.offers) != 64 {
		t.Errorf("%+v, want all workers of the node", got)
	}
	o, offers = fullPool(3, 8, 1)
	if got := newWhatIf(o).fewest(slices.DeleteFunc(offers, func(f giveback.Offer) bool { return strings.HasSuffix(f.Workers[0].Pod, "-0") }), 8, rank{}); got != nil {
		t.Errorf("%v, although no node can become empty", giveback.Pods(got.offers))
	}
}

func TestOnlyDemandThatHasNoRoomElsewhereTakes(t *testing.T) {
	const none = 0
	for name, c := range map[string]struct {
		priority      int // of the group on the full nodes
		first, second float64
		demand        int64
		max           int // of the group on free nodes
		arriving      int // pods of it on their way, with upscalingMode Conservative
		want          int // workers that are taken
	}{
		"the full group has priority":      {priority: 1, demand: 1, max: 100, want: none},
		"the full group is cheaper":        {first: 1, second: 2, demand: 1, max: 100, want: none},
		"both are equal":                   {demand: 1, max: 100, want: none},
		"it waits for pods on their way":   {priority: 1, demand: 20, max: 100, arriving: 5, want: none},
		"the other group is at its limit":  {priority: 1, demand: 3, max: 2, want: 1},
		"and the full group is not first":  {demand: 3, max: 2, want: 1},
		"the other group takes nothing":    {demand: 2, max: 0, want: 2},
		"more than both of them can serve": {demand: 100, max: 2, want: 8},
	} {
		t.Run(name, func(t *testing.T) {
			o, offers := fullPool(1, 1, c.demand)
			cluster := &o.View.Cluster
			gpus := func(n int64) landing.Quantities { return landing.Quantities{"nvidia.com/gpu": raydemand.Whole(n)} }
			all := []landing.Node{
				{Name: "n0000", Pool: "p", Ready: true, Labels: map[string]string{"k": "full"}, Allocatable: gpus(8), Use: &landing.Use{Requests: gpus(8)}},
				{Name: "free", Pool: "q", Ready: true, Labels: map[string]string{"k": "free"}, Allocatable: gpus(100), Use: &landing.Use{Requests: gpus(0)}},
			}
			stays := int64(0)
			cluster.Stock = landing.NodesOf(all, landing.Pools{Rooms: []landing.Room{
				{Pool: "p", Nodes: 1, MaxNodes: new(int64), MayAddNodes: &stays}, {Pool: "q", Nodes: 1, MaxNodes: new(int64), MayAddNodes: &stays}}})
			full := cluster.Groups[0]
			full.Name, full.Priority, full.Pod.Selector = "full", c.priority, map[string]string{"k": "full"}
			free := full
			free.Name, free.Index, free.Priority, free.Max, free.Pod.Selector = "free", 1, 0, c.max, map[string]string{"k": "free"}
			if c.second > 0 {
				full.Price, free.Price = &c.first, &c.second
			}
			cluster.Groups = []nodepool.WorkerGroup{full, free}
			cluster.Free(nil)
			s := planner.SnapshotOf(*cluster)
			s.Requests = o.Intent.Snapshot.Requests
			if c.arriving > 0 {
				s.UpscalingMode = "Conservative"
			}
			for i := range c.arriving {
				s.Nodes = append(s.Nodes, planner.Node{Pod: fmt.Sprint("pod", i), Group: "free", State: planner.Pending, KubeNode: "free"})
			}
			o.Intent.Snapshot, o.Intent.Plan = s, planner.Compute(s, s.Policy)
			got := newWhatIf(o).fewest(offers, 8, rank{})
			if c.want == none {
				if got != nil {
					t.Errorf("%v are taken for %v", giveback.Pods(got.offers), got.launches)
				}
				return
			}
			if got == nil || len(got.offers) != c.want || got.launches["full"] < int64(c.want) {
				t.Errorf("%+v, want %d workers", got, c.want)
			}
		})
	}
}

// What a capacity policy keeps free takes nothing from others: neither bundles without room, nor pods that wait.
func TestNothingIsTakenForWarmSpares(t *testing.T) {
	for name, c := range map[string]struct {
		requests, waiting int64
		min               int
		warm              bool
		want              int
	}{
		"spares alone":                      {warm: true},
		"spares beside demand":              {requests: 2, warm: true, want: 2},
		"pods that wait as spares":          {waiting: 3, warm: true},
		"pods that wait for the minimum":    {waiting: 3, min: 1, warm: true, want: 1},
		"pods that wait without the policy": {waiting: 3, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			o, offers := fullPool(1, 1, 1)
			cluster := &o.View.Cluster
			cluster.Groups[0].Min = c.min
			for i := range c.waiting {
				cluster.Workers = append(cluster.Workers, nodepool.Worker{Pod: fmt.Sprint("waits-", i), Group: "gpu", Unschedulable: "0/1 nodes are available"})
			}
			s := &o.Intent.Snapshot
			s.Groups[0].Min, s.Requests[0].Count = c.min, c.requests
			if c.requests == 0 {
				s.Requests = nil
			}
			for i := range cluster.Workers {
				s.Nodes = append(s.Nodes, planner.Node{Pod: cluster.Workers[i].Pod, Group: "gpu", State: planner.Pending})
			}
			if c.warm {
				s.Warm = &planner.Warm{Policy: "CapacityPolicy p", Keep: []planner.WarmEntry{{Name: "keepWarm[0]", Group: "gpu", Count: 3}}}
			}
			o.Intent.Plan = planner.Compute(*s, s.Policy)
			room := newWhatIf(o)
			if room.short() != (c.want > 0) {
				t.Errorf("short of room: %v", room.short())
			}
			got := room.fewest(offers, 8, rank{})
			if c.want == 0 && got != nil || c.want > 0 && (got == nil || len(got.offers) != c.want) {
				t.Errorf("%+v, want %d workers", got, c.want)
			}
		})
	}
}
