package landing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAPoolHasWhatItsNodesHaveAndThoseThatMayBeAdded(t *testing.T) {
	shape := asking(quantities("nvidia.com/gpu", 1, "cpu", 3))
	typed := labelled("node.kubernetes.io/instance-type", "x")
	nodes := []landing.Node{
		inPool("a", node("1", announces("nvidia.com/gpu", 4), typed)), inPool("a", node("2", announces("nvidia.com/gpu", 2))),
		inPool("a", node("coming", typed, isNotReady)), inPool("a", node("cpus")),
	}
	rooms := landing.Rooms(nodes, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 5)})
	has := landing.WhereOn(rooms, nodes, &shape).Pods[0].Has
	if got, want := has["nvidia.com/gpu"], raydemand.Whole(4+2+4+2); got != want {
		t.Errorf("has %s GPUs, want %s", got, want)
	}
	if _, bounded := landing.WhereOn(landing.Rooms(nodes, landing.Config{}, nil), nodes, &shape).Pods[0].Has["cpu"]; bounded {
		t.Error("a pool that may grow is told to have an end")
	}
}
