package landing_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func inPool(pool string, n landing.Node) landing.Node {
	n.Pool = pool
	return n
}

func ofKarpenter(pool string, gpus int64) landing.Node {
	n := inPool(pool, node(pool+"-x", announces("nvidia.com/gpu", gpus), labelled("karpenter.sh/nodepool", pool)))
	n.Capacity = landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus), "cpu": raydemand.Whole(8)}
	return n
}

func limitedTo(pool, resource string, n int64) landing.Ceiling {
	return landing.Ceiling{Group: pool, Source: landing.FromKarpenter, Limits: landing.Quantities{resource: raydemand.Whole(n)}}
}

// roomText writes a pool's pods in one line: pool perNode/holds +nodes +pods, ? if unknown.
func roomText(list []landing.PoolPods) string {
	known := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	var lines []string
	for _, p := range list {
		lines = append(lines, fmt.Sprintf("%s %d/%d +%s +%s", p.Pool, p.PerNode, p.Holds, known(p.MayAddNodes), known(p.MayAddPods)))
	}
	return strings.Join(lines, "; ")
}

func TestNobodyAddsNodesWithoutAPoolIfAllPoolsAreDeclared(t *testing.T) {
	shape := asks("nvidia.com/gpu", 1)
	nodes := []landing.Node{inPool("", node("n", announces("nvidia.com/gpu", 4)))}
	for complete, want := range map[bool]string{false: " 4/4 +? +?", true: " 4/4 +0 +0"} {
		rooms := landing.Rooms(nodes, landing.Config{Complete: complete}, nil)
		if got := roomText(landing.WhereOn(rooms, nodes, &shape).Pods); got != want {
			t.Errorf("complete %t: %q, want %q", complete, got, want)
		}
	}
}

func TestPoolsHoldPodsByTheirNodesAndByWhatTheyMayAdd(t *testing.T) {
	gpu := func(pool string, change ...func(*landing.Node)) landing.Node {
		return inPool(pool, node("n", append([]func(*landing.Node){announces("nvidia.com/gpu", 4)}, change...)...))
	}
	typed := labelled("node.kubernetes.io/instance-type", "Standard_ND96asr_v4")
	declared := gpuNode("a", quantities("nvidia.com/gpu", 8), "")
	declared.Declared = true
	selecting := func(key, value string) landing.PodShape {
		shape := asks("nvidia.com/gpu", 1)
		shape.Selector = map[string]string{key: value}
		return shape
	}
	affine := func(key, operator string, values ...string) landing.PodShape {
		shape := asks("nvidia.com/gpu", 1)
		shape.Affinity = []landing.NodeTerm{{Labels: []landing.Requirement{{Key: key, Operator: operator, Values: values}}}}
		return shape
	}
	template := landing.Ceiling{Group: "k", Source: landing.FromKarpenter, Template: &landing.NodeTemplate{
		Labels:       map[string]string{"team": "blue"},
		Requirements: []landing.Requirement{{Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"spot"}}},
	}}
	tainted := landing.Ceiling{Group: "k", Source: landing.FromKarpenter, Template: &landing.NodeTemplate{
		Taints: []sharing.Taint{{Key: "sku", Value: "gpu", Effect: sharing.NoSchedule}},
	}}
	tests := []struct {
		name     string
		shape    landing.PodShape
		nodes    []landing.Node
		specs    []landing.Spec
		ceilings []landing.Ceiling
		want     string
	}{
		{"no pool at all", asks("nvidia.com/gpu", 1), nil, nil, nil, ""},
		{"a pool of which nobody says how far it may grow", asks("nvidia.com/gpu", 2), []landing.Node{gpu("a"), gpu("a")}, nil, nil, "a 2/4 +? +?"},
		{"a maximum in nodes", asks("nvidia.com/gpu", 2), []landing.Node{gpu("a"), gpu("a")}, nil, []landing.Ceiling{ceiling("a", 0, 5)}, "a 2/4 +3 +6"},
		{"a new node is like the smallest that fits", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a"), gpu("a", announces("nvidia.com/gpu", 8)), gpu("a", announces("cpu", 0))}, nil,
			[]landing.Ceiling{ceiling("a", 0, 5)}, "a 4/16 +2 +8"},
		{"but not like one that fits none", asks("nvidia.com/gpu", 8), []landing.Node{gpu("a"), gpu("a", announces("nvidia.com/gpu", 8))}, nil,
			[]landing.Ceiling{ceiling("a", 0, 5)}, "a 1/1 +3 +3"},
		{"or as declared, whatever others are", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a"), gpu("a", announces("nvidia.com/gpu", 16)), declared},
			[]landing.Spec{{Name: "a", MaxNodes: new(int64(4))}}, nil, "a 8/20 +2 +16"},
		{"and if no new node fits, those that do are all", asks("nvidia.com/gpu", 16), []landing.Node{gpu("a"), gpu("a", announces("nvidia.com/gpu", 16)), declared},
			[]landing.Spec{{Name: "a", MaxNodes: new(int64(4))}}, nil, "a 0/1 +2 +0"},
		{"a pool that is full", asks("nvidia.com/gpu", 2), []landing.Node{gpu("a"), gpu("a")}, nil, []landing.Ceiling{ceiling("a", 0, 1)}, "a 2/4 +0 +0"},
		{"the configuration goes before the autoscaler", asks("nvidia.com/gpu", 2), []landing.Node{gpu("a")}, []landing.Spec{{Name: "a", MaxNodes: new(int64(3))}},
			[]landing.Ceiling{ceiling("a", 0, 5)}, "a 2/2 +2 +4"},
		{"what is cordoned holds nothing now, and tells what a new node holds; what is not ready is to be", asks("nvidia.com/gpu", 1),
			[]landing.Node{gpu("a", isCordoned), gpu("a", isNotReady)}, nil, []landing.Ceiling{ceiling("a", 0, 3)}, "a 4/4 +1 +4"},
		{"a node of the same type that comes up, without devices and with a taint", asks("nvidia.com/gpu", 1),
			[]landing.Node{gpu("a", typed), inPool("a", node("new", typed, isNotReady, taintedBy("cni", "", sharing.NoSchedule)))}, nil, nil, "a 4/8 +? +?"},
		{"one without devices is of another type", asks("nvidia.com/gpu", 1),
			[]landing.Node{gpu("a", typed), inPool("a", node("cpu")), inPool("a", node("cpu", labelled("node.kubernetes.io/instance-type", "cpus")))}, nil, nil, "a 4/4 +? +?"},
		{"a taint alone stays", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a", typed), gpu("a", typed, taintedBy("mine", "", sharing.NoSchedule))}, nil, nil, "a 4/4 +? +?"},
		{"a cordoned one that came up badly holds nothing", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a", typed), inPool("a", node("new", typed, isCordoned))}, nil, nil, "a 4/4 +? +?"},
		{"a pool with other nodes", asks("amd.com/gpu", 1), []landing.Node{gpu("a")}, nil, []landing.Ceiling{ceiling("a", 0, 3)}, ""},
		{"the scarcest resource decides", asking(quantities("nvidia.com/gpu", 1, "cpu", 3)), []landing.Node{gpu("a")}, nil, nil, "a 2/2 +? +?"},
		{"so do the pods that a node takes", asks("cpu", 1), []landing.Node{gpu("a", announces("pods", 5))}, nil, nil, "a 5/5 +? +?"},
		{"nodes of no pool may be added by anybody", asks("nvidia.com/gpu", 1), []landing.Node{gpu("")}, nil, nil, " 4/4 +? +?"},
		{"a declared shape of a pool without nodes", asks("nvidia.com/gpu", 1), []landing.Node{declared},
			[]landing.Spec{{Name: "a", MaxNodes: new(int64(2))}}, nil, "a 8/0 +2 +16"},
		{"a node group that no node tells about may take anything", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a")}, nil,
			[]landing.Ceiling{ceiling("a", 0, 1), ceiling("asg-of-somebody", 0, 3)}, "a 4/4 +0 +0; asg-of-somebody 0/0 +3 +?"},
		{"but for one that stays empty", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a")}, nil,
			[]landing.Ceiling{ceiling("a", 0, 1), ceiling("asg-of-somebody", 0, 0)}, "a 4/4 +0 +0"},
		{"and one that the group does not select", selecting("agentpool", "a"), []landing.Node{gpu("a", labelled("agentpool", "a"))}, nil,
			[]landing.Ceiling{ceiling("aks-a-1-vmss", 0, 1), ceiling("aks-b-1-vmss", 0, 9)}, "a 4/4 +0 +0"},
		{"the one that it selects", selecting("agentpool", "b"), nil, nil, []landing.Ceiling{ceiling("aks-b-1-vmss", 0, 9)}, "aks-b-1-vmss 0/0 +9 +?"},
		{"Karpenter's limit is of resources, whatever the next node is", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{limitedTo("k", "nvidia.com/gpu", 10)}, "k 4/4 +? +6"},
		{"a limit that is reached", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{limitedTo("k", "nvidia.com/gpu", 4)}, "k 4/4 +? +0"},
		{"a limit on CPUs bounds GPU pods that name none only when it is reached", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{limitedTo("k", "cpu", 9)}, "k 4/4 +? +?"},
		{"and then it does", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil, []landing.Ceiling{limitedTo("k", "cpu", 8)}, "k 4/4 +? +0"},
		{"a number of nodes does not bound pods where nodes are of any size", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{{Group: "k", Source: landing.FromKarpenter, MaxNodes: new(int64(3))}}, "k 4/4 +2 +?"},
		{"but none is none", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{{Group: "k", Source: landing.FromKarpenter, MaxNodes: new(int64(1))}}, "k 4/4 +0 +0"},
		{"a limit on what the pod does not request, and not every node has, bounds nothing", asks("cpu", 8), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{limitedTo("k", "nvidia.com/gpu", 4)}, "k 1/1 +? +?"},
		{"limits hold beside a configured number of nodes", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, []landing.Spec{{Name: "k", MaxNodes: new(int64(5))}},
			[]landing.Ceiling{limitedTo("k", "nvidia.com/gpu", 10)}, "k 4/4 +4 +6"},
		{"Karpenter's nodes are of any size, whoever says how many", asks("nvidia.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)},
			[]landing.Spec{{Name: "k", MaxNodes: new(int64(3))}}, nil, "k 4/4 +2 +?"},
		{"a name that no cloud gives may be of the pool that is selected", selecting("agentpool", "b"), nil, nil, []landing.Ceiling{ceiling("asg-of-somebody", 0, 9)}, "asg-of-somebody 0/0 +9 +?"},
		{"without an instance type nobody knows that devices will come", asks("nvidia.com/gpu", 1), []landing.Node{gpu("a"), inPool("a", node("cpu"))}, nil, nil, "a 4/4 +? +?"},
		{"Karpenter may add a node that fits where none does now", asks("amd.com/gpu", 1), []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{{Group: "k", Source: landing.FromKarpenter}}, "k 0/0 +? +?"},
		{"a template that fits", selecting("team", "blue"), nil, nil, []landing.Ceiling{template}, "k 0/0 +? +?"},
		{"one with another label", selecting("team", "red"), nil, nil, []landing.Ceiling{template}, ""},
		{"one that requires another value", selecting("karpenter.sh/capacity-type", "on-demand"), nil, nil, []landing.Ceiling{template}, ""},
		{"another NodePool is selected", selecting("karpenter.sh/nodepool", "other"), nil, nil, []landing.Ceiling{template}, ""},
		{"a node group is selected, and Karpenter's nodes are in none", selecting("eks.amazonaws.com/nodegroup", "a100"),
			[]landing.Node{gpu("a100", labelled("eks.amazonaws.com/nodegroup", "a100")), ofKarpenter("general", 4)}, nil, []landing.Ceiling{ceiling("a100", 0, 1)}, "a100 4/4 +0 +0"},
		{"nor is one that a NodePool makes", selecting("cloud.google.com/gke-nodepool", "a"), nil, nil, []landing.Ceiling{template}, ""},
		{"without its NodePool, a label that no node of Karpenter's has", selecting("team", "blue"), []landing.Node{ofKarpenter("k", 4)}, nil, nil, "k 0/0 +? +?"},
		{"one that Karpenter knows by itself", selecting("node.kubernetes.io/instance-type", "p4d.24xlarge"), []landing.Node{ofKarpenter("k", 4)}, nil, nil, "k 0/0 +? +?"},
		{"a label that the template does not have", selecting("color", "red"), nil, nil, []landing.Ceiling{template}, ""},
		{"one that it may have and Karpenter knows", selecting("topology.kubernetes.io/zone", "z"), nil, nil, []landing.Ceiling{template}, "k 0/0 +? +?"},
		{"an affinity that the template cannot meet", affine("karpenter.sh/capacity-type", "In", "on-demand"), nil, nil, []landing.Ceiling{template}, ""},
		{"one that it meets", affine("karpenter.sh/capacity-type", "NotIn", "on-demand"), nil, nil, []landing.Ceiling{template}, "k 0/0 +? +?"},
		{"a taint of the template", asks("nvidia.com/gpu", 1), nil, nil, []landing.Ceiling{tainted}, ""},
		{"that is tolerated", tolerating(asks("nvidia.com/gpu", 1), landing.Toleration{Key: "sku", Operator: "Exists"}), nil, nil, []landing.Ceiling{tainted}, "k 0/0 +? +?"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rooms := landing.Rooms(test.nodes, landing.Config{Pools: test.specs}, test.ceilings)
			if diff := cmp.Diff(test.want, roomText(landing.WhereOn(rooms, test.nodes, &test.shape).Pods)); diff != "" {
				t.Errorf("room (-want +got):\n%s", diff)
			}
		})
	}
}

// A wrong count of cards must not result in a list of that length, whatever its source.
func TestPodsOverCardsAreCountedWithoutAListOfThem(t *testing.T) {
	cards := int64(math.MaxInt64)
	n := node("n", announces("aliyun.com/gpu-mem", 60))
	n.GPUs = &sharing.GPUs{Kind: gpuinfo.GPUMemory, Cards: &cards, UnitsPerCard: map[string]int64{"aliyun.com/gpu-mem": 15}}
	shape := asks("aliyun.com/gpu-mem", 4)
	if got := landing.PodsOn(&shape, &n); got != 15 {
		t.Errorf("%d pods, want 15", got)
	}
}

// Anyone can write a label, and a list as long as the label's count could use all memory.
func TestALabelThatCountsMoreCardsThanAnyMachineHasIsUnreadable(t *testing.T) {
	for _, label := range []string{"aliyun.accelerator/nvidia_count", "nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count"} {
		for _, count := range []string{"17", "2000000000", "100000000000000000"} {
			n := gpuNode("n", quantities("aliyun.com/gpu-mem", 60), label+"="+count)
			gpus := sharing.Reader{}.Read(sharing.NodeObject{Labels: n.Labels, Allocatable: quantities("aliyun.com/gpu-mem", 60)})
			if len(gpus.Problems) != 1 || gpus.Problems[0].Code != sharing.LabelUnreadable || !strings.Contains(gpus.Problems[0].Message, label+"="+count) {
				t.Errorf("%s=%s: problems %v", label, count, gpus.Problems)
			}
			if gpus.Cards != nil {
				t.Errorf("%s=%s: %d cards, want none known", label, count, *gpus.Cards)
			}
			shape := asks("aliyun.com/gpu-mem", 4)
			if got := landing.PodsOn(&shape, &n); got != 15 {
				t.Errorf("%s=%s: %d pods, want 15", label, count, got)
			}
		}
	}
}

func ceiling(group string, minimum, maximum int64) landing.Ceiling {
	return landing.Ceiling{Group: group, MinNodes: &minimum, MaxNodes: &maximum, Source: "cluster-autoscaler"}
}

func TestNodeGroupsAreFoundByTheNamesThatCloudsGiveThem(t *testing.T) {
	names := []string{"gpu", "big-gpu", "u", "workers", "memory-node-zone1", "nodepool1"}
	tests := []struct{ group, want string }{
		{"nodepool1", "nodepool1"},
		{"aks-gpu-12345678-vmss", "gpu"},
		{"eks-workers-2c1f9d3b-a8e2-4f11-9c3e-8b7a6d5e4f30", "workers"},
		{"eksctl-prod-nodegroup-big-gpu-NodeGroup-1ABCDEF2GHIJ", "big-gpu"},
		{"https://www.googleapis.com/compute/v1/projects/p/zones/europe-west4-a/instanceGroups/gke-prod-gpu-0a1b2c3d-grp", "gpu"},
		{"https://www.googleapis.com/compute/v1/projects/p/zones/europe-west4-a/instanceGroups/gke-prod-big-gpu-0a1b2c3d-grp", "big-gpu"},
		{"MachineSet/openshift-machine-api/memory-node-zone1", "memory-node-zone1"},
		{"asg-of-somebody", ""},
		{"aks-gpux-12345678-vmss", ""},
	}
	for _, test := range tests {
		for range 2 {
			got := landing.CeilingsOf(names, []landing.Ceiling{ceiling(test.group, 0, 3)})
			if len(got) > 1 || test.want == "" && len(got) != 0 || test.want != "" && got[test.want].Group != test.group {
				t.Errorf("%s: %v, want pool %q", test.group, got, test.want)
			}
			slices.Reverse(names) // the order does not matter
		}
	}
}

func TestTheGroupsOfAPoolInAllZonesAddUp(t *testing.T) {
	got := landing.CeilingsOf([]string{"gpu"}, []landing.Ceiling{ceiling("a/gke-c-gpu-00000000-grp", 1, 3), ceiling("b/gke-c-gpu-11111111-grp", 0, 4)})["gpu"]
	want := ceiling("a/gke-c-gpu-00000000-grp,b/gke-c-gpu-11111111-grp", 1, 7)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ceiling (-want +got):\n%s", diff)
	}
	groups := []landing.Ceiling{{Group: "gpu"}, ceiling("x/gpu", 1, 3)}
	for range 2 {
		if got := landing.CeilingsOf([]string{"gpu"}, groups)["gpu"]; got.MaxNodes != nil {
			t.Errorf("a pool with a group that nothing bounds is bounded by %d", *got.MaxNodes)
		}
		slices.Reverse(groups)
	}
}

func TestPodsThatTakeOnePortShareNoNode(t *testing.T) {
	taking := func(ports ...landing.HostPort) *landing.Neighbors { return &landing.Neighbors{HostPorts: ports} }
	one := taking(landing.HostPort{Port: 80})
	for _, test := range []struct {
		name  string
		other *landing.Neighbors
		want  bool
	}{
		{"no port", taking(), false},
		{"another port", taking(landing.HostPort{Port: 81}), false},
		{"the same one among others", taking(landing.HostPort{Port: 81}, landing.HostPort{Port: 80, Protocol: "TCP", IP: "0.0.0.0"}), true},
		{"of another protocol", taking(landing.HostPort{Port: 80, Protocol: "UDP"}), false},
		{"on one address", taking(landing.HostPort{Port: 80, IP: "10.0.0.1"}), true},
	} {
		if got := one.Refuses(test.other); got != test.want || test.other.Refuses(one) != test.want {
			t.Errorf("%s: shares a port: %t, want %t in both directions", test.name, got, test.want)
		}
	}
	if taking(landing.HostPort{Port: 80, IP: "10.0.0.1"}).Refuses(taking(landing.HostPort{Port: 80, IP: "10.0.0.2"})) {
		t.Error("ports on two addresses are not the same")
	}
}

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
