package nodepool_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// BenchmarkPromises is what a cycle takes to find where the pods of a RayCluster and of so many others that come first
// may run: 1,000 nodes of eight GPUs, of which no two have equally much free.
func BenchmarkPromises(b *testing.B) {
	shape := landing.PodShape{Requests: landing.Quantities{"cpu": raydemand.Whole(4), "nvidia.com/gpu": raydemand.One}}
	nodes := make([]landing.Node, 1000)
	for i := range nodes {
		nodes[i] = landing.Node{Name: fmt.Sprintf("n%04d", i), Pool: "p", Ready: true,
			Allocatable: landing.Quantities{"cpu": raydemand.Whole(96), "nvidia.com/gpu": raydemand.Whole(8), "pods": raydemand.Whole(110)},
			Use:         &landing.Use{Requests: landing.Quantities{"cpu": raydemand.Amount(i), "pods": raydemand.One}}}
	}
	none := int64(0)
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: []landing.Room{{Pool: "p", Nodes: 1000, MaxNodes: new(int64), MayAddNodes: &none}}})
	for _, others := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			var promises []nodepool.Promise
			for i := range others {
				key := nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint(i)}
				promises = append(promises, nodepool.PromiseOf(key, &nodepool.WorkerGroup{Name: "gpu", Pod: shape}, 3))
			}
			bytes := 0
			b.ReportAllocs()
			for b.Loop() {
				cluster := nodepool.Cluster{Stock: stock, Groups: []nodepool.WorkerGroup{{Name: "gpu", Pod: shape}}}
				cluster.Promise(promises)
				if bytes == 0 {
					bytes = jsonBytes(b, cluster.Places) + jsonBytes(b, inSnapshot(cluster.Promised))
				}
			}
			b.ReportMetric(float64(bytes)/1024, "JSON-KiB")
		})
	}
}

// inSnapshot returns promises as a snapshot has them.
func inSnapshot(promises []nodepool.Promise) (all []any) {
	for _, p := range promises {
		all = append(all, map[string]any{"rayCluster": p.RayCluster.String(), "pods": p.Pods, "pod": p.Pod})
	}
	return all
}

func jsonBytes(tb testing.TB, v any) int {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return len(text)
}
