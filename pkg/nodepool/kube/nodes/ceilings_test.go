package nodes

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAClusterKnowsWhatItsPoolsMayStillAdd(t *testing.T) {
	inPool := func(name string, cordoned bool) *corev1.Node {
		node := kubeNode(name, "4", corev1.ConditionTrue)
		node.Labels, node.Spec.Unschedulable = map[string]string{"agentpool": "gpu"}, cordoned
		return node
	}
	client := &fakeNodes{list: []corev1.Node{*inPool("a", false), *inPool("b", true)}}
	besideNodes(t, client, func(t *testing.T, n *nodes, _ *atomic.Int32) {
		read := func() (nodepool.Cluster, landing.PoolPods) {
			cluster := nodepool.Cluster{Key: llm, UID: "u", Groups: []nodepool.WorkerGroup{{Name: "gpu", Max: 9, Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}}}}, Workers: []nodepool.Worker{
				{Pod: "here", Group: "gpu", Node: "a"}, {Pod: "cordoned", Group: "gpu", Node: "b"}, {Pod: "leaves", Group: "gpu", Node: "a", Terminating: true},
				{Pod: "failed", Group: "gpu", Node: "a", Failed: true}, {Pod: "waits", Group: "gpu"}, {Pod: "nobody's", Group: "gone", Node: "a"},
			}}
			n.addTo(&cluster)
			if len(cluster.Groups[0].PoolPods) != 1 {
				t.Fatalf("pools %+v", cluster.Groups[0].PoolPods)
			}
			return cluster, cluster.Groups[0].PoolPods[0]
		}
		if _, got := read(); got.MayAddNodes != nil {
			t.Errorf("before ceilings are read: %+v", got)
		}
		ceiling := int64(3)
		n.setCeilings([]landing.Ceiling{{Group: "aks-gpu-1-vmss", MaxNodes: &ceiling, Source: landing.FromClusterAutoscaler}}, false)
		time.Sleep(2 * nodesPause)
		for range 2 { // what one cycle counts must not stay for the next
			cluster, got := read()
			// Two on node a were it empty, the one on the cordoned node, and two on a third node.
			want := landing.PoolPods{Pool: "gpu", PerNode: 2, Holds: 3, Bound: 2, MayAddNodes: new(int64(1)), MayAddPods: new(int64(2)), ProfileFixed: true,
				Has: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(12)}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("room (-want +got):\n%s", diff)
			}
			rooms := []landing.Room{{Pool: "gpu", Source: landing.FromClusterAutoscaler, Nodes: 2, MaxNodes: new(int64(3)), MayAddNodes: new(int64(1))}}
			if diff := cmp.Diff(rooms, cluster.Pools); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
			if most, bounded := got.Most(); most != 5 || !bounded {
				t.Errorf("at most %d pods, bounded %t; want 5", most, bounded)
			}
		}
	})
}
