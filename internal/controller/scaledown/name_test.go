package scaledown

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
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
