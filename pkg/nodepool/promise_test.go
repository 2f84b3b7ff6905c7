package nodepool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuStock is nodes of eight GPUs, of which the i-th has as many taken as taken says.
func gpuStock(taken []int64) *landing.Nodes {
	nodes := make([]landing.Node, len(taken))
	for i, n := range taken {
		nodes[i] = landing.Node{Name: fmt.Sprintf("n%d", i), Pool: "p", Ready: true,
			Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(8), "pods": raydemand.Whole(110)},
			Use:         &landing.Use{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(n)}}}
	}
	return landing.NodesOf(nodes, landing.Pools{Rooms: []landing.Room{{Pool: "p", Nodes: int64(len(nodes)), MaxNodes: new(int64), MayAddNodes: new(int64)}}})
}

func gpuGroup(name string, gpus int64) nodepool.WorkerGroup {
	return nodepool.WorkerGroup{Name: name, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}}
}

func TestPromisesOfEqualPodsShareOneEntry(t *testing.T) {
	one, other, large := gpuGroup("one", 1), gpuGroup("other", 1), gpuGroup("large", 4)
	apart := gpuGroup("apart", 1)
	apart.Pod.Neighbors.Apart = []landing.PodTerm{{Selector: landing.PodSelector{
		Requirements: []landing.Requirement{{Key: "app", Operator: "In", Values: []string{"b"}}}}}}
	selected := gpuGroup("selected", 1)
	selected.Pod.Neighbors.Labels = map[string]string{"app": "b"}
	a, b := nodepool.ClusterKey{Namespace: "ml", Name: "a"}, nodepool.ClusterKey{Namespace: "ml", Name: "b"}
	cluster := nodepool.Cluster{Stock: gpuStock([]int64{0, 3}), Groups: []nodepool.WorkerGroup{gpuGroup("own", 1)}}
	cluster.Promise([]*nodepool.Promise{
		nodepool.PromiseOf(a, &one, 2), nodepool.PromiseOf(a, &large, 1), nodepool.PromiseOf(a, &other, 3),
		nodepool.PromiseOf(b, &other, 5), nodepool.PromiseOf(b, &apart, 1), nodepool.PromiseOf(b, &selected, 1),
	})
	var got []string
	for _, p := range cluster.Promised {
		got = append(got, fmt.Sprintf("%s: %d %s", p.RayCluster.Name, p.Pods, p.Pod.Name))
	}
	// The two last have the class of the first, but a constraint between pods concerns them.
	want := "[a: 5 ml/a/one a: 1 ml/a/large b: 5 ml/a/one b: 1 ml/b/apart b: 1 ml/b/selected]"
	if fmt.Sprint(got) != want {
		t.Errorf("promised are %v, want %s", got, want)
	}
	for _, place := range cluster.Places {
		if want := "[own ml/a/one ml/a/large ml/b/apart ml/b/selected]"; fmt.Sprint(place.Accepts) != want {
			t.Errorf("node %s accepts %v, want %s", place.Node, place.Accepts, want)
		}
	}
}

func TestTheLastOfManyPromisesAreAddedUp(t *testing.T) {
	small, large := gpuGroup("small", 1), gpuGroup("large", 4)
	var promises []*nodepool.Promise
	for i := range 50 {
		promises = append(promises, nodepool.PromiseOf(nodepool.ClusterKey{Name: fmt.Sprint(i)}, &small, 2))
	}
	promises = append(promises, nodepool.PromiseOf(nodepool.ClusterKey{Name: "last"}, &large, 1))
	cluster := nodepool.Cluster{Stock: gpuStock([]int64{0}), Groups: []nodepool.WorkerGroup{gpuGroup("own", 1)}}
	cluster.Promise(promises)
	n := len(cluster.Promised)
	if n != 34 || cluster.Promised[31].Name != "/31" || cluster.Promised[32].Name != "others" ||
		cluster.Promised[32].Pods != 2*18 || cluster.Promised[33].Name != "/last" {
		t.Errorf("%d promises, the last ones %+v; want 32, 36 pods of others, and those of last", n,
			cluster.Promised[max(0, n-3):])
	}
}

// TestPromisesThatShareAnEntryLeaveAsMuchRoom compares drawn promises with the same ones each for itself.
func TestPromisesThatShareAnEntryLeaveAsMuchRoom(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	shared := 0
	for range 500 {
		taken := make([]int64, 1+draw.IntN(5))
		for i := range taken {
			taken[i] = draw.Int64N(8)
		}
		var promises []*nodepool.Promise
		for i := range 1 + draw.IntN(6) {
			key := nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint(i / 2)}
			group := gpuGroup(fmt.Sprint(i), 1+draw.Int64N(3))
			promises = append(promises, nodepool.PromiseOf(key, &group, 1+draw.Int64N(3)))
		}
		own := gpuGroup("own", 1+draw.Int64N(4))
		room := func() int64 {
			cluster := nodepool.Cluster{Stock: gpuStock(taken), Groups: []nodepool.WorkerGroup{own}}
			cluster.Promise(promises)
			return roomBeside(&cluster)
		}
		together := room()
		for i := range promises {
			promises[i].Class = landing.Key{}
		}
		if alone := room(); together != alone {
			t.Fatalf("GPUs taken %v, promises %+v: room for %d, and %d if each is for itself", taken, promises, together, alone)
		}
		shared += len(promises)
	}
	if shared < 500 {
		t.Errorf("only %d promises", shared)
	}
}

// roomBeside returns how many pods of the first group fit beside what is promised.
func roomBeside(cluster *nodepool.Cluster) int64 {
	pods, number := []landing.Pod{*cluster.Groups[0].Kind}, map[string]int{}
	for _, p := range cluster.Promised {
		if _, known := number[p.Pod.Name]; !known {
			number[p.Pod.Name] = len(pods)
			pods = append(pods, *p.Pod)
		}
	}
	on := landing.New(pods, cluster.Places).Empty()
	for _, p := range cluster.Promised {
		on.Take(number[p.Pod.Name], p.Pods)
	}
	return on.Room(0)
}

func TestAHeadWithoutANodeComesBeforeItsWorkers(t *testing.T) {
	pod := landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}
	nodes := []landing.Node{{Name: "n", Ready: true, Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}}}
	none := []landing.Ceiling{{Group: "", MaxNodes: new(int64)}}
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: landing.Rooms(nodes, landing.Config{}, none)})
	for name, test := range map[string]struct {
		head nodepool.Head
		want int64
	}{
		"a head that waits for a node": {nodepool.Head{Pod: "h", Shape: &pod}, 1},
		"a head on a node":             {nodepool.Head{Pod: "h", Node: "n", Shape: &pod}, 2},
		"no head yet":                  {nodepool.Head{}, 2},
	} {
		c := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "ray"}, Head: test.head, Stock: stock,
			Groups: []nodepool.WorkerGroup{{Name: "g", Pod: pod}}}
		c.Places, _ = stock.Places([]landing.Kind{stock.KindOf("g", &pod)})
		c.Groups[0].Kind = &landing.Pod{Name: "g", Requests: pod.Requests}
		c.Promise(nil)
		c.Promise(c.Promised) // the head counts once
		pods := []landing.Pod{*c.Groups[0].Kind}
		for _, p := range c.Promised {
			pods = append(pods, *p.Pod)
		}
		taken := landing.New(pods, c.Places).Empty()
		for i, p := range c.Promised {
			taken.Take(1+i, p.Pods)
		}
		if got := taken.Room(0); got != test.want || len(c.Promised) != int(2-test.want) {
			t.Errorf("%s: room for %d workers, promised %+v, want %d", name, got, c.Promised, test.want)
		}
	}
}
