package scaledown

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestRemovalsKeepReplicasWhole(t *testing.T) {
	host := func(pod, replica string) observe.Member {
		return observe.Member{Worker: &nodepool.Worker{Pod: pod, Group: "slice", Replica: replica}}
	}
	members := []observe.Member{host("a0", "a"), host("a1", "a"), host("b0", "b"), host("b1", "b")}
	removal := func(pod string) Removal {
		return Removal{pod: pod, group: "slice", unit: unitOf("slice", pod[:1], pod)}
	}
	going := []Removal{removal("a0"), removal("b0"), removal("b1")}
	got := PodsOf(wholeReplicas(members, going))
	if diff := cmp.Diff([]string{"b0", "b1"}, got); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
	group := nodepool.WorkerGroup{Name: "slice", Replicas: 2, Min: 1, Max: 4, NumOfHosts: 2}
	both := []Removal{removal("a0"), removal("b0"), removal("a1"), removal("b1")}
	got = PodsOf(keepMinimum(nodepool.Cluster{Groups: []nodepool.WorkerGroup{group}}, both))
	if diff := cmp.Diff([]string{"a0", "a1"}, got); diff != "" {
		t.Errorf("removals above the minimum (-want +got):\n%s", diff)
	}
}

// TestWhatRayContradictsKeepsItsReplica has a host whose container was started again after its drain: naming the other
// host would make the operator delete both.
func TestWhatRayContradictsKeepsItsReplica(t *testing.T) {
	host := func(pod, replica string, node *raydemand.Node) observe.Member {
		return observe.Member{Worker: &nodepool.Worker{Pod: pod, Group: "slice", Replica: replica}, Node: node}
	}
	drained := func(pod, replica string) Removal {
		return Removal{pod: pod, group: "slice", unit: unitOf("slice", replica, pod), reason: removedDrained}
	}
	members := []observe.Member{
		host("a0", "a", &raydemand.Node{Status: raydemand.Running}), host("a1", "a", nil), host("b0", "b", nil), host("b1", "b", nil),
	}
	set := Set{Removals: []Removal{drained("a0", "a"), drained("a1", "a"), drained("b0", "b"), drained("b1", "b")}}
	got := PodsOf(set.ConfirmedByRay(members, true).Removals)
	if diff := cmp.Diff([]string{"b0", "b1"}, got); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
}
