package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
)

// jointGroup is a worker group of a snapshot: what one pod requests, as pairs of names and amounts, and more of its
// pod template as JSON.
type jointGroup struct {
	name, limits string
	// spec and metadata are more members of the template's spec and metadata, each with a trailing comma.
	spec, metadata string
}

// jointSnapshot returns a snapshot of a RayCluster with these groups, each with one GPU for Ray,
// and with 20 requests for each of them.
func jointSnapshot(groups []jointGroup, nodes, pools string) string {
	var specs, requests []string
	for _, g := range groups {
		var limits []string
		for field := range strings.FieldsSeq(g.limits) {
			name, amount, _ := strings.Cut(field, "=")
			limits = append(limits, fmt.Sprintf("%q: %q", name, amount))
		}
		specs = append(specs, fmt.Sprintf(`{"groupName": %q, "replicas": 0, "minReplicas": 0, "maxReplicas": 20,
			"rayStartParams": {"num-gpus": "1", "num-cpus": "1"}, "template": {"metadata": {%s"name": "w"}, "spec": {%s
			"containers": [{"name": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi", %s}}}]}}}`,
			g.name, g.metadata, g.spec, strings.Join(limits, ", ")))
		requests = append(requests, fmt.Sprintf(`{"resources": {"GPU": 1}, "count": 20, "labelSelectors": [{"ray.io/node-group": %q}]}`, g.name))
	}
	return fmt.Sprintf(`{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {"rayVersion": "2.52.0",
		"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}},
		"workerGroupSpecs": [%s]}}, "kubeNodes": [%s], "pools": [%s], "pendingRequests": [%s]}`,
		strings.Join(specs, ",\n"), nodes, pools, strings.Join(requests, ", "))
}

// jointNode returns a Node of pool p. labels and allocatable are pairs as in jointGroup.
func jointNode(name, labels, allocatable string, more ...string) string {
	object := func(pairs string) string {
		var members []string
		for field := range strings.FieldsSeq(pairs) {
			key, value, _ := strings.Cut(field, "=")
			members = append(members, fmt.Sprintf("%q: %q", key, value))
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	return fmt.Sprintf(`{"metadata": {"name": %q, "labels": %s}, "spec": {%s}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
		"allocatable": %s}}`, name, object("kubernetes.azure.com/agentpool=p kubernetes.io/hostname="+name+" "+labels), strings.Join(more, ""),
		object("cpu=96 memory=900Gi pods=110 ephemeral-storage=100Gi "+allocatable))
}

// planOf plans a snapshot.
func planOf(t *testing.T, text string) planner.Plan {
	t.Helper()
	code, out, errOut := command(t, text, "autoscaler", "plan", "--snapshot", "-", "-o", "json")
	var plan planner.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.ExitOK {
		t.Fatalf("exit %d: %s: %v\n%s\n%s", code, errOut, err, out, text)
	}
	return plan
}

const (
	onlyP = `{"name": "p", "maxNodes": 0}`
	ack   = "ack.node.gpu.schedule=share aliyun.accelerator/nvidia_name=Tesla-T4 aliyun.accelerator/nvidia_count=4 aliyun.accelerator/nvidia_mem=15GiB"
	hami  = `gpu=on nvidia.com/gpu.product=Tesla-T4 nvidia.com/gpu.count=2 nvidia.com/gpu.memory=16376`
)

func gpuGroup(name string, gpus int) jointGroup {
	return jointGroup{name: name, limits: fmt.Sprintf("nvidia.com/gpu=%d", gpus)}
}

func memoryGroup(name string, units int) jointGroup {
	return jointGroup{name: name, limits: fmt.Sprintf("aliyun.com/gpu-mem=%d", units)}
}

func coresGroup(name string, percent int) jointGroup {
	return jointGroup{name: name, limits: fmt.Sprintf("aliyun.com/gpu-mem=1 aliyun.com/gpu-core.percentage=%d", percent)}
}

func kaiGroup(name, fraction string) jointGroup {
	return jointGroup{name: name, limits: "ephemeral-storage=1Gi", metadata: fmt.Sprintf(`"annotations": {"gpu-fraction": %q},`, fraction)}
}

// TestGroupsTogetherLaunchNoMoreThanTheirNodesHold checks the sum that several groups launch on the same nodes.
func TestGroupsTogetherLaunchNoMoreThanTheirNodesHold(t *testing.T) {
	shared := jointNode("n1", ack, "aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4")
	withCores := jointNode("n1", strings.Replace(ack, "schedule=share", "schedule=core_mem", 1),
		"aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 aliyun.com/gpu-core.percentage=400")
	eight := func(name string, more ...string) string {
		return jointNode(name, "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=8", "nvidia.com/gpu=8", more...)
	}
	two := jointNode("n1", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=2", "nvidia.com/gpu=2")
	tests := []struct {
		name   string
		groups []jointGroup
		nodes  []string
		want   int
	}{
		{"8 and 9 GiB on four cards of 15", []jointGroup{memoryGroup("a", 8), memoryGroup("b", 9)}, []string{shared}, 4},
		{"8 and 7 GiB on four cards of 15", []jointGroup{memoryGroup("a", 8), memoryGroup("b", 7)}, []string{shared}, 8},
		{"60 and 55 percent of the cores", []jointGroup{coresGroup("a", 60), coresGroup("b", 55)}, []string{withCores}, 4},
		{"5 and 3 GPUs on two nodes of 8", []jointGroup{gpuGroup("a", 5), gpuGroup("b", 3)}, []string{eight("n1"), eight("n2")}, 4},
		{"5 GPUs and 5 GPUs on two nodes of 8", []jointGroup{gpuGroup("a", 5), gpuGroup("b", 5)}, []string{eight("n1"), eight("n2")}, 2},
		{"5 and 3 GPUs on one node of 8", []jointGroup{gpuGroup("a", 5), gpuGroup("b", 3)}, []string{eight("n1")}, 2},
		{"half of the memory of two cards", []jointGroup{{name: "a", limits: "nvidia.com/gpu=1 nvidia.com/gpumem-percentage=50"}},
			[]string{jointNode("n1", hami, "nvidia.com/gpu=20")}, 4},
		{"60 percent of eight cards", []jointGroup{{name: "a", limits: "koordinator.sh/gpu-core=60 koordinator.sh/gpu-memory-ratio=60"}},
			[]string{jointNode("n1", "", "koordinator.sh/gpu-core=800 koordinator.sh/gpu-memory-ratio=800")}, 8},
		{"60 and 40 percent of eight cards", []jointGroup{{name: "a", limits: "koordinator.sh/gpu-core=60 koordinator.sh/gpu-memory-ratio=60"},
			{name: "b", limits: "koordinator.sh/gpu-core=40 koordinator.sh/gpu-memory-ratio=40"}},
			[]string{jointNode("n1", "", "koordinator.sh/gpu-core=800 koordinator.sh/gpu-memory-ratio=800")}, 16},
		{"half of a card by KAI", []jointGroup{kaiGroup("a", "0.5")}, []string{two}, 4},
		{"60 and 55 percent of a card by KAI", []jointGroup{kaiGroup("a", "0.6"), kaiGroup("b", "0.55")}, []string{two}, 2},
		{"MIG instances by their number", []jointGroup{{name: "a", limits: "nvidia.com/mig-1g.5gb=1"}, {name: "b", limits: "nvidia.com/mig-3g.20gb=1"}},
			[]string{jointNode("n1", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/mig.strategy=mixed nvidia.com/gpu.count=2",
				"nvidia.com/mig-1g.5gb=4 nvidia.com/mig-3g.20gb=2")}, 6},
		{"ephemeral storage of a node", []jointGroup{{name: "a", limits: "nvidia.com/gpu=1 ephemeral-storage=40Gi"}, {name: "b", limits: "nvidia.com/gpu=1 ephemeral-storage=70Gi"}},
			[]string{eight("n1"), eight("n2")}, 4},
		{"pods of a node", []jointGroup{gpuGroup("a", 1), gpuGroup("b", 2)}, []string{strings.Replace(eight("n1"), `"pods": "110"`, `"pods": "3"`, 1)}, 3},
		{"a taint that one group tolerates", []jointGroup{gpuGroup("a", 4), {name: "b", limits: "nvidia.com/gpu=4", spec: `"tolerations": [{"operator": "Exists"}],`}},
			[]string{eight("n1"), eight("n2", `"taints": [{"key": "mine", "effect": "NoSchedule"}]`)}, 4},
		{"a node that one group selects", []jointGroup{gpuGroup("a", 8), {name: "b", limits: "nvidia.com/gpu=8", spec: `"nodeSelector": {"kubernetes.io/hostname": "n2"},`}},
			[]string{eight("n1"), eight("n2"), eight("n3")}, 3},
		{"a cordoned node", []jointGroup{gpuGroup("a", 4), gpuGroup("b", 4)}, []string{eight("n1"), eight("n2", `"unschedulable": true`)}, 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := planOf(t, jointSnapshot(test.groups, strings.Join(test.nodes, ", "), onlyP))
			sum := 0
			for _, n := range plan.Launch {
				sum += n
			}
			if sum != test.want {
				t.Errorf("launches %v, %d together; want %d\n%+v", plan.Launch, sum, test.want, plan.InfeasibleRequests)
			}
		})
	}
}

// TestPodsOfOthersLowerWhatGroupsLaunchTogether checks that pods on the nodes take their part, and those of the groups
// count once.
func TestPodsOfOthersLowerWhatGroupsLaunchTogether(t *testing.T) {
	node := jointNode("n1", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=8", "nvidia.com/gpu=8")
	file := jointSnapshot([]jointGroup{gpuGroup("a", 3), gpuGroup("b", 1)}, node, onlyP)
	pod := func(namespace, labels string, gpus int) string {
		return fmt.Sprintf(`{"metadata": {"name": "x", "namespace": %q, "labels": {%s}}, "spec": {"nodeName": "n1",
			"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "%d"}}}]}, "status": {"phase": "Running"}}`, namespace, labels, gpus)
	}
	own := pod("n", `"ray.io/cluster": "c", "ray.io/group": "a", "ray.io/node-type": "worker"`, 3)
	beside := strings.Replace(file, `"replicas": 0`, `"replicas": 1`, 1)
	for _, test := range []struct {
		name, file, pods string
		want             int // GPUs
	}{
		{"empty nodes", file, "", 8},
		{"a pod of another team", file, pod("other", "", 6), 2},
		{"a pod of the group that is on the node", beside, own, 5},
		{"a pod of the group that has no node yet", beside, "", 5},
		{"both", beside, own + ", " + pod("other", "", 4), 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := planOf(t, strings.Replace(test.file, `"pools": [`, `"kubePods": [`+test.pods+`], "pools": [`, 1))
			if got := 3*plan.Launch["a"] + plan.Launch["b"]; got != test.want {
				t.Errorf("launches %v, %d GPUs; want %d\n%+v", plan.Launch, got, test.want, plan.InfeasibleRequests)
			}
		})
	}
}
