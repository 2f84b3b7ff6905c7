package landing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestNodesMakePools(t *testing.T) {
	node := func(name, marks string, gpus int, taints ...sharing.Taint) sharing.NodeObject {
		return sharing.NodeObject{Name: name, Labels: labels(marks), Taints: taints, Allocatable: quantities("nvidia.com/gpu", gpus)}
	}
	gpu := sharing.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: sharing.NoSchedule}
	cordoned := node("c", "cloud.google.com/gke-nodepool=a n/gpu.product=Tesla-T4 n/gpu.count=1 n/gpu.replicas=1 topology.kubernetes.io/zone=z2", 1,
		gpu, sharing.Taint{Key: "node.kubernetes.io/unschedulable", Effect: sharing.NoSchedule})
	cordoned.Unschedulable = true
	nodes := []sharing.NodeObject{
		node("k", "karpenter.sh/nodepool=spot karpenter.sh/capacity-type=spot eks.amazonaws.com/nodegroup=other node.kubernetes.io/instance-type=p4d.24xlarge", 8),
		node("a", "cloud.google.com/gke-nodepool=a n/gpu.product=Tesla-T4 n/gpu.count=4 n/gpu.replicas=1 topology.kubernetes.io/zone=z1", 4, gpu),
		cordoned,
		node("m", "agentpool=mixed n/gpu.product=Tesla-T4 n/gpu.count=1 n/gpu.replicas=1", 1),
		node("n", "agentpool=mixed n/gpu.product=NVIDIA-A10 n/gpu.count=1 n/gpu.replicas=4", 4),
		node("none", "", 1),
	}
	t4, five, two, eight := "Tesla-T4", int64(5), int64(2), int64(8)
	want := []landing.Pool{
		{Name: "a", Provider: "gke", Nodes: 2, Schedulable: 1, Product: &t4, Cards: &five, Kind: gpuinfo.Whole, Units: quantities("nvidia.com/gpu", 5), Isolation: gpuinfo.Hardware,
			Zones: []string{"z1", "z2"}, InstanceTypes: []string{}, Taints: []string{"nvidia.com/gpu=present:NoSchedule"}, Problems: 1},
		{Name: "mixed", Provider: "aks", Nodes: 2, Schedulable: 2, Cards: &two, Kind: gpuinfo.UnknownKind, Units: quantities("nvidia.com/gpu", 5), Isolation: gpuinfo.UnknownIsolation,
			Zones: []string{}, InstanceTypes: []string{}, Taints: []string{}},
		{Name: "spot", Provider: "karpenter", Nodes: 1, Schedulable: 1, Cards: &eight, Kind: gpuinfo.Whole, Units: quantities("nvidia.com/gpu", 8), Isolation: gpuinfo.Hardware, Spot: true,
			Zones: []string{}, InstanceTypes: []string{"p4d.24xlarge"}, Taints: []string{}},
	}
	if diff := cmp.Diff(want, landing.Observed(sharing.Reader{}, nodes)); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	configured := landing.Observed(sharing.Reader{PoolLabel: "node.kubernetes.io/instance-type"}, nodes[:1])
	if len(configured) != 1 || configured[0].Name != "p4d.24xlarge" || configured[0].Provider != "configured" {
		t.Errorf("by a configured label: %+v", configured)
	}
}
