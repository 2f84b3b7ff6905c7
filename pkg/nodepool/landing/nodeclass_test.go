package landing_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func lotsOf(nodes []landing.Node, declared ...landing.Node) *landing.Nodes {
	return landing.NodesOf(nodes, landing.Pools{Shapes: declared})
}

// found returns all results for a shape on these nodes.
func found(shape *landing.PodShape, rooms []landing.Room, nodes []landing.Node) map[string]any {
	reader := sharing.Reader{}
	first, count := landing.SeesGPUs(reader, shape, nodes)
	group := nodepool.WorkerGroup{Pod: *shape, GPUs: nodepool.GPUSpec{Limits: shape.Requests}}
	return map[string]any{
		"landing": shape.Fit(nodes), "reported": nodepool.Reported(reader, &group, nodes), "slices": landing.SlicesOf(reader, shape, nodes),
		"visible": fmt.Sprint(first, count), "pools": landing.WhereOn(rooms, nodes, shape).Pods,
	}
}

// randomNodes returns nodes of a few kinds, which differ in every property that matters for placement.
func randomNodes(r *rand.Rand) []landing.Node {
	nodes := make([]landing.Node, 2+r.IntN(30))
	for i := range nodes {
		n := node(fmt.Sprintf("n-%02d", i), labelled("kubernetes.io/hostname", fmt.Sprintf("n-%02d", i)), labelled("zone", fmt.Sprint(r.IntN(2))),
			labelled("address", fmt.Sprintf("ip-n-%02d", i)))
		n.Pool = fmt.Sprintf("p%d", r.IntN(2))
		n.Allocatable["memory"] = raydemand.Whole(int64(31+r.IntN(3)) * gib / 2)
		if r.IntN(2) == 0 {
			announces("nvidia.com/gpu", int64(1+r.IntN(2)))(&n)
		}
		for _, change := range []func(*landing.Node){isCordoned, isNotReady, taintedBy("sku", "gpu", sharing.NoSchedule), labelled("nvidia.com/gpu.product", "Tesla-T4"),
			labelled("nvidia.com/gpu.sharing-strategy", "time-slicing"), labelled("node.kubernetes.io/instance-type", "t4"), labelled("nvidia.com/gpu.replicas", "4")} {
			if r.IntN(5) == 0 {
				change(&n)
			}
		}
		read := sharing.Reader{}.Read(sharing.NodeObject{Name: n.Name, Labels: n.Labels, Allocatable: map[string]int64{"nvidia.com/gpu": int64(n.Allocatable["nvidia.com/gpu"] / raydemand.One)}})
		n.GPUs = &read
		nodes[i] = n
	}
	return nodes
}

func randomShape(r *rand.Rand) landing.PodShape {
	shape := landing.PodShape{Requests: landing.Quantities{"memory": raydemand.Whole(int64(1+r.IntN(20)) * gib)}, Selector: map[string]string{}}
	optional := []func(){
		func() { shape.Requests["nvidia.com/gpu"] = raydemand.Whole(int64(1 + r.IntN(2))) },
		func() { shape.Requests["amd.com/gpu"] = raydemand.One },
		func() { shape.Selector["zone"] = fmt.Sprint(r.IntN(2)) },
		func() { shape.Selector["kubernetes.io/hostname"] = "n-01" },
		func() { shape.NodeName = "n-01" },
		func() { shape.Tolerations = []landing.Toleration{{Operator: "Exists"}} },
		func() {
			shape.Affinity = []landing.NodeTerm{{Labels: []landing.Requirement{{Key: "address", Operator: "In", Values: []string{"ip-n-00", "ip-n-02"}}}}}
		},
		func() {
			shape.Affinity = []landing.NodeTerm{{Fields: []landing.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{"n-00"}}}}}
		},
	}
	for _, add := range optional {
		if r.IntN(5) == 0 {
			add()
		}
	}
	return shape
}

func TestLotsTellWhatAllNodesTell(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	fewer := 0
	for range 2000 {
		nodes, shape := randomNodes(r), randomShape(r)
		declared := gpuNode("p9", quantities("nvidia.com/gpu", 8), "")
		declared.Declared = true
		rooms := landing.Rooms(nodes, landing.Config{Pools: []landing.Spec{{Name: "p9"}}}, nil)
		all, some := append(append([]landing.Node{}, nodes...), declared), lotsOf(nodes, declared).For(&shape)
		if diff := cmp.Diff(found(&shape, rooms, all), found(&shape, rooms, some)); diff != "" {
			t.Fatalf("%d of %d places for %+v (-all +lots):\n%s", len(some), len(all), shape, diff)
		}
		if len(some) < len(all) {
			fewer++
		}
	}
	if fewer < 300 {
		t.Errorf("only %d times were there fewer places than nodes", fewer)
	}
}

// TestKindsOfOneClassAreComparedOnceWithTheSameResult compares the places of drawn pods, some of them equal, with those
// of the same pods whose classes are unknown.
func TestKindsOfOneClassAreComparedOnceWithTheSameResult(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	shared := 0
	for range 300 {
		var nodes []landing.Node
		for i := range 1 + draw.IntN(12) {
			n := node(fmt.Sprint("n", i), announces("nvidia.com/gpu", draw.Int64N(9)), labelled("zone", fmt.Sprint(draw.IntN(2))))
			n.Pool = fmt.Sprint("p", draw.IntN(2))
			if draw.IntN(2) == 0 {
				n.Use = &landing.Use{Requests: landing.Quantities{"cpu": raydemand.Whole(draw.Int64N(8))}}
			}
			if draw.IntN(5) == 0 {
				isNotReady(&n)
			}
			nodes = append(nodes, n)
		}
		stock := landing.NodesOf(nodes, landing.Pools{Rooms: []landing.Room{{Pool: "p0", MayAddNodes: new(draw.Int64N(3))}, {Pool: "p1"}}})
		shapes, kinds := make([]landing.PodShape, 1+draw.IntN(6)), []landing.Kind{}
		for i := range shapes {
			shapes[i] = asking(map[string]int64{"cpu": 1 + draw.Int64N(2), "nvidia.com/gpu": draw.Int64N(2)})
			if draw.IntN(2) == 0 {
				shapes[i].Selector = map[string]string{"zone": fmt.Sprint(draw.IntN(2))}
			}
			if draw.IntN(4) == 0 {
				shapes[i].Neighbors.Apart = []landing.PodTerm{{NamespaceSelector: &landing.PodSelector{}}}
			}
			kinds = append(kinds, stock.KindOf(fmt.Sprint("g", i), &shapes[i]))
		}
		places, pods := stock.Places(kinds)
		seen := map[landing.Key]bool{}
		for i := range kinds {
			kinds[i].Class = landing.KeyOf(&shapes[i])
			if seen[kinds[i].Class] {
				shared++
			}
			seen[kinds[i].Class] = true
		}
		again, podsAgain := stock.Places(kinds)
		if !reflect.DeepEqual(places, again) || !reflect.DeepEqual(pods, podsAgain) {
			t.Fatalf("nodes %+v, pods %+v:\n%+v\nwithout classes %+v", nodes, pods, again, places)
		}
	}
	if shared < 100 {
		t.Errorf("only %d pods were equal to others", shared)
	}
}

// TestNodesThatDifferInMemoryHaveTheirOwnRoom: nodes that one label of an instance type, or none, describes may have
// been bought with more memory. Pods of DaemonSets take as much of each.
func TestNodesThatDifferInMemoryHaveTheirOwnRoom(t *testing.T) {
	var nodes []landing.Node
	for i, gib := range []int64{512, 768, 768} {
		nodes = append(nodes, landing.Node{Name: fmt.Sprint("n", i), Ready: true,
			Allocatable: landing.Quantities{"memory": raydemand.Whole(gib << 30), "pods": raydemand.Whole(110)},
			Use:         &landing.Use{Requests: landing.Quantities{"memory": raydemand.Whole(10 << 30), "pods": raydemand.One}}})
	}
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: landing.Rooms(nodes, landing.Config{}, nil)})
	shape := &landing.PodShape{Requests: landing.Quantities{"memory": raydemand.Whole(505 << 30)}} // fits into 512 GiB
	places, pods := stock.Places([]landing.Kind{stock.KindOf("g", shape)})
	places = slices.DeleteFunc(places, func(p landing.Place) bool { return p.New })
	if room := landing.New(pods, places).Empty().Room(0); room != 2 {
		t.Errorf("room for %d pods, want one on each of the two larger nodes: %+v", room, places)
	}
}
