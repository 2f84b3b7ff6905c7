package nodes

import (
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestRayClustersWithEqualGroupsShareWhatTheNodesMean compares each RayCluster with one that no other is like.
func TestRayClustersWithEqualGroupsShareWhatTheNodesMean(t *testing.T) {
	n, cluster := smallFleet()
	n.view.Store(n.viewNow())
	added := func(name string, change func(*nodepool.Cluster)) nodepool.Cluster {
		now := cluster
		now.Key.Name, now.Workers = name, nil
		now.Groups = append([]nodepool.WorkerGroup(nil), cluster.Groups...)
		change(&now)
		n.addTo(&now)
		return now
	}
	same := func(*nodepool.Cluster) {}
	first := added("first", same)
	if len(first.Places) == 0 {
		t.Fatal("no place")
	}
	for name, c := range map[string]struct {
		change func(*nodepool.Cluster)
		shares bool
	}{
		"equal groups":  {same, true},
		"other labels":  {func(c *nodepool.Cluster) { c.Groups[0].Pod.Neighbors.Labels = map[string]string{"a": "b"} }, true},
		"a larger pod":  {func(c *nodepool.Cluster) { c.Groups[0].Pod.Requests = landing.Quantities{"cpu": raydemand.Whole(5)} }, false},
		"other names":   {func(c *nodepool.Cluster) { c.Groups[0].Name = "renamed" }, false},
		"own pods":      {func(c *nodepool.Cluster) { c.Workers = []nodepool.Worker{{Pod: "w", Group: "0", Node: "node-00000"}} }, true},
		"anti-affinity": {func(c *nodepool.Cluster) { c.Groups[0].Pod.Neighbors.Apart = apartFromAll() }, false},
	} {
		other := added(name, c.change)
		if shares := &other.Places[0] == &first.Places[0]; shares != c.shares {
			t.Errorf("%s: shares the places: %t, want %t", name, shares, c.shares)
		}
	}
}

func apartFromAll() []landing.PodTerm {
	return []landing.PodTerm{{}}
}

// smallFleet is 40 nodes in 20 pools, half of them with GPUs, and a cluster with 3 groups, each for one of the pools.
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
