package nodes

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// largeFleet is 10,000 nodes in 20 pools, half of them with GPUs, and a cluster with 50 groups, each for one of the
// pools, and 1,000 workers.
func largeFleet() (*nodes, nodepool.Cluster) { return fleetOf(10_000, 50, 1_000) }

// smallFleet is the same with 40 nodes and 3 groups.
func smallFleet() (*nodes, nodepool.Cluster) { return fleetOf(40, 3, 0) }

func fleetOf(count, groups, workers int) (*nodes, nodepool.Cluster) {
	const poolCount = 20
	n := newNodes(&fakeNodes{}, slog.New(slog.DiscardHandler), func() {})
	n.byName = make(map[string]keptNode, count)
	most := int64(count)
	for i := range count {
		pool := i % poolCount
		node := kubeNode(fmt.Sprintf("node-%05d", i), "8", corev1.ConditionTrue)
		node.Labels = map[string]string{
			"kubernetes.azure.com/agentpool": fmt.Sprintf("pool%d", pool), "kubernetes.io/hostname": node.Name, "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": fmt.Sprint(i % 3), "node.kubernetes.io/instance-type": "Standard_ND96asr_v4",
		}
		if pool%2 == 0 {
			node.Labels["nvidia.com/gpu.product"], node.Labels["nvidia.com/gpu.count"] = "NVIDIA-A100-SXM4-40GB", "8"
		} else {
			delete(node.Status.Allocatable, "nvidia.com/gpu")
		}
		node.Status.Allocatable["cpu"], node.Status.Allocatable["memory"] = resource.MustParse("96"), resource.MustParse("880Gi")
		n.byName[node.Name] = kept(decode.ForPodFit(sharing.Reader{}, node))
	}
	for pool := range poolCount {
		n.ceilings = append(n.ceilings, landing.Ceiling{Group: fmt.Sprintf("aks-pool%d-1-vmss", pool), MaxNodes: &most, Source: landing.FromClusterAutoscaler})
	}
	cluster := nodepool.Cluster{Key: llm, UID: "u", Generation: 1}
	for i := range groups {
		shape := landing.PodShape{
			Requests: landing.Quantities{"cpu": raydemand.Whole(4), "memory": raydemand.Whole(16 << 30)},
			Selector: map[string]string{"kubernetes.azure.com/agentpool": fmt.Sprintf("pool%d", i%poolCount)},
		}
		if i%2 == 0 {
			shape.Requests["nvidia.com/gpu"] = raydemand.One
		}
		cluster.Groups = append(cluster.Groups, nodepool.WorkerGroup{Index: i, Name: fmt.Sprint(i), Max: 100, Pod: shape, GPUs: nodepool.GPUSpec{Limits: shape.Requests}})
	}
	for i := range workers {
		cluster.Workers = append(cluster.Workers, nodepool.Worker{Pod: fmt.Sprint(i), Group: fmt.Sprint(i % groups), Node: fmt.Sprintf("node-%05d", i)})
	}
	return n, cluster
}

// BenchmarkAddNodes is what nodes cost: in a cycle in which none has changed, in one after a node or what pods take
// of nodes has changed, and the making of the view itself, once for all RayClusters.
func BenchmarkAddNodes(b *testing.B) {
	n, cluster := largeFleet()
	read := func() {
		now := cluster
		now.Groups = append([]nodepool.WorkerGroup(nil), cluster.Groups...)
		n.addTo(&now)
	}
	b.Run("nothing changed", func(b *testing.B) {
		n.view.Store(n.viewNow())
		read()
		b.ReportAllocs()
		for b.Loop() {
			read()
		}
	})
	// changed runs cycles of which each has another stock, and other facts if nodes changed.
	changed := func(b *testing.B, nodes bool) {
		view := n.viewNow()
		stocks := []*landing.Nodes{view.stock, view.stock.With(view.nodes)}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			again := *view
			if again.stock = stocks[i%2]; nodes {
				again.facts = n.views.Add(1)
			}
			n.view.Store(&again)
			read()
		}
	}
	b.Run("a node changed", func(b *testing.B) { changed(b, true) })
	b.Run("a pod changed", func(b *testing.B) { changed(b, false) })
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n.viewNow()
		}
	})
}

// BenchmarkPlacesOfRayClusters is what the places of RayClusters with three groups each take of memory, on 1,000 nodes
// of which no two have equally much free: if all have equal groups, and if no two have.
func BenchmarkPlacesOfRayClusters(b *testing.B) {
	const clusters = 100
	n, first := fleetOf(1_000, 3, 0)
	for i := range first.Groups {
		first.Groups[i].Pod.Selector = nil // all nodes are for all groups
		first.Groups[i].Pod.Requests = landing.Quantities{"cpu": raydemand.Whole(int64(1 + i))}
	}
	view := n.viewNow()
	for i := range view.nodes {
		view.nodes[i].Use = &landing.Use{Requests: landing.Quantities{"cpu": raydemand.Amount(i)}}
	}
	view.stock = view.stock.With(view.nodes)
	n.view.Store(view)
	for name, equal := range map[string]bool{"equal groups": true, "other groups": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n.fits = newFitCache()
				before := liveBytes()
				for i := range clusters {
					cluster := first
					cluster.Key.Name = fmt.Sprint(i)
					cluster.Groups = append([]nodepool.WorkerGroup(nil), first.Groups...)
					if !equal {
						cluster.Groups[0].Name = fmt.Sprint("group", i)
					}
					n.addTo(&cluster)
				}
				b.ReportMetric(float64(liveBytes()-before)/1024/clusters, "KiB/RayCluster")
			}
		})
	}
}

// liveBytes is the size of the heap after a collection.
func liveBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
