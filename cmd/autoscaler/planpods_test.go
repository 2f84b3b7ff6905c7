package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// podOn returns a pod that requests GPUs of a node, with more metadata.
func podOn(node, metadata, gpus string) string {
	return `{"metadata": {"name": "p"` + metadata + `}, "spec": {"nodeName": "` + node + `", "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": "` + gpus + `"}}}]}}`
}

// TestAPlanSaysOnceThatItCountsNodesAsEmpty checks the finding: only for nodes without pods on which a group fits.
func TestAPlanSaysOnceThatItCountsNodesAsEmpty(t *testing.T) {
	file := func(limits, more string) string {
		return oneGroup(limits, `{}`, `{"nvidia.com/gpu": "8", "pods": "110"}`, more)
	}
	const fits, fitsNot = `{"nvidia.com/gpu": "2"}`, `{"nvidia.com/gpu": "9"}`
	for name, test := range map[string]struct {
		file string
		want int
	}{
		"nodes without pods":         {file(fits, ""), 1},
		"nodes with pods":            {file(fits, `, "kubePods": []`), 0},
		"no node for the group":      {file(fitsNot, ""), 0},
		"a group that may not grow":  {strings.Replace(file(fits, ""), `"maxReplicas": 9`, `"maxReplicas": 0`, 1), 0},
		"a RayCluster without nodes": {strings.Replace(file(fits, ""), `"kubeNodes"`, `"note"`, 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, test.file, "autoscaler", "plan", "--snapshot", "-")
			var plan struct{ Findings []raydemand.Finding }
			if err := json.Unmarshal([]byte(out), &plan); err != nil || code != cli.ExitOK {
				t.Fatalf("exit %d, %v: %s%s", code, err, errOut, out)
			}
			count := 0
			for _, f := range plan.Findings {
				if f.Code == "pods-unknown" {
					count++
				}
			}
			if count != test.want {
				t.Errorf("%d findings pods-unknown, want %d: %s", count, test.want, out)
			}
		})
	}
}

// TestPodsOnNodesLowerWhatIsLaunched checks how many pods a plan launches on a node that others use too, for each way of
// handing out GPUs.
func TestPodsOnNodesLowerWhatIsLaunched(t *testing.T) {
	foreign := func(node, limits, annotations, more string) string {
		var members []string
		for field := range strings.FieldsSeq(limits) {
			name, amount, _ := strings.Cut(field, "=")
			members = append(members, fmt.Sprintf("%q: %q", name, amount))
		}
		return fmt.Sprintf(`{"metadata": {"name": "p", "namespace": "other", "annotations": {%s}%s}, "spec": {"nodeName": %q, "containers": [{"name": "a", "resources": {"limits": {%s}}}]}}`,
			annotations, more, node, strings.Join(members, ", "))
	}
	shared := jointNode("n1", ack, "aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4")
	withCores := jointNode("n1", strings.Replace(ack, "schedule=share", "schedule=core_mem", 1), "aliyun.com/gpu-mem=60 aliyun.com/gpu-count=4 aliyun.com/gpu-core.percentage=400")
	eight := jointNode("n1", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=8", "nvidia.com/gpu=8")
	percent := jointNode("n1", "", "koordinator.sh/gpu-core=800 koordinator.sh/gpu-memory-ratio=800")
	halves := []jointGroup{{name: "a", limits: "nvidia.com/gpu=1 nvidia.com/gpumem-percentage=50"}}
	parts := []jointGroup{{name: "a", limits: "koordinator.sh/gpu-core=60 koordinator.sh/gpu-memory-ratio=60"}}
	volcano := []jointGroup{{name: "a", limits: "volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory=5000"}}
	volcanoNode := strings.Replace(jointNode("n1", "", "volcano.sh/vgpu-number=20 volcano.sh/vgpu-memory=20000 volcano.sh/vgpu-cores=200"), `"labels"`,
		`"annotations": {"volcano.sh/node-vgpu-register": "GPU-a,10,10000,NVIDIA-A10,true,hami-core:GPU-b,10,10000,NVIDIA-A10,true,hami-core:"}, "labels"`, 1)
	for name, test := range map[string]struct {
		groups []jointGroup
		node   string
		pods   []string
		want   int
	}{
		"whole cards":                      {[]jointGroup{gpuGroup("a", 2)}, eight, []string{foreign("n1", "nvidia.com/gpu=5", "", "")}, 1},
		"whole cards of nobody":            {[]jointGroup{gpuGroup("a", 2)}, eight, []string{}, 4},
		"a pod on another node":            {[]jointGroup{gpuGroup("a", 2)}, eight, []string{foreign("n2", "nvidia.com/gpu=5", "", "")}, 4},
		"a pod that is being deleted":      {[]jointGroup{gpuGroup("a", 2)}, eight, []string{foreign("n1", "nvidia.com/gpu=5", "", `, "deletionTimestamp": "2026-01-01T00:00:00Z"`)}, 1},
		"CPU of a pod without GPUs":        {[]jointGroup{gpuGroup("a", 1)}, eight, []string{foreign("n1", "cpu=94500m", "", "")}, 1},
		"memory of a pod without GPUs":     {[]jointGroup{gpuGroup("a", 1)}, eight, []string{foreign("n1", "memory=897Gi", "", "")}, 3},
		"a place for a pod":                {[]jointGroup{gpuGroup("a", 1)}, strings.Replace(eight, `"pods": "110"`, `"pods": "3"`, 1), []string{foreign("n1", "", "", "")}, 2},
		"two groups beside others":         {[]jointGroup{gpuGroup("a", 4), gpuGroup("b", 3)}, eight, []string{foreign("n1", "nvidia.com/gpu=1", "", "")}, 2},
		"a card of ACK by its record":      {[]jointGroup{memoryGroup("a", 8)}, shared, []string{foreign("n1", "aliyun.com/gpu-mem=8", `"scheduler.framework.gpushare.allocation": "{\"0\":{\"2\":8}}"`, "")}, 3},
		"a card of gpushare by its record": {[]jointGroup{memoryGroup("a", 8)}, shared, []string{foreign("n1", "aliyun.com/gpu-mem=8", `"ALIYUN_COM_GPU_MEM_IDX": "2", "ALIYUN_COM_GPU_MEM_POD": "8"`, "")}, 3},
		"every card without a record":      {[]jointGroup{memoryGroup("a", 8)}, shared, []string{foreign("n1", "aliyun.com/gpu-mem=8", "", "")}, 0},
		"what is left beside it":           {[]jointGroup{memoryGroup("a", 7)}, shared, []string{foreign("n1", "aliyun.com/gpu-mem=8", `"scheduler.framework.gpushare.allocation": "{\"0\":{\"2\":8}}"`, "")}, 7},
		"cores of ACK": {[]jointGroup{coresGroup("a", 60)}, withCores, []string{foreign("n1", "aliyun.com/gpu-mem=1 aliyun.com/gpu-core.percentage=50",
			`"scheduler.framework.gpushare.allocation": "{\"0\":{\"1\":1}}", "gpushare.alibabacloud.com/core-percentage": "{\"0\":{\"1\":50}}"`, "")}, 3},
		"a card of HAMi by its record": {halves, jointNode("n1", hami, "nvidia.com/gpu=20"), []string{foreign("n1", "nvidia.com/gpu=1 nvidia.com/gpumem=9000", `"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,9000,0:;"`, "")}, 2},
		"half of each card of HAMi":    {halves, jointNode("n1", hami, "nvidia.com/gpu=20"), []string{foreign("n1", "nvidia.com/gpu=1 nvidia.com/gpumem-percentage=50", "", "")}, 2},
		"a card of Volcano":            {volcano, volcanoNode, []string{foreign("n1", "volcano.sh/vgpu-number=1 volcano.sh/vgpu-memory=6000", `"volcano.sh/vgpu-ids-new": "GPU-b,NVIDIA,6000,0:"`, "")}, 2},
		"a card of Koordinator": {parts, percent, []string{foreign("n1", "koordinator.sh/gpu-core=60 koordinator.sh/gpu-memory-ratio=60",
			`"scheduling.koordinator.sh/device-allocated": "{\"gpu\":[{\"minor\":3,\"resources\":{\"koordinator.sh/gpu-core\":\"60\",\"koordinator.sh/gpu-memory-ratio\":\"60\"}}]}"`, "")}, 7},
		"MIG instances": {[]jointGroup{{name: "a", limits: "nvidia.com/mig-1g.5gb=1"}},
			jointNode("n1", "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/mig.strategy=mixed nvidia.com/gpu.count=1", "nvidia.com/mig-1g.5gb=7"),
			[]string{foreign("n1", "nvidia.com/mig-1g.5gb=3", "", "")}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := strings.Replace(jointSnapshot(test.groups, test.node, onlyP), `"kubeNodes":`, `"kubePods": [`+strings.Join(test.pods, ", ")+`], "kubeNodes":`, 1)
			plan, sum := planOf(t, snapshot), 0
			for _, n := range plan.Launch {
				sum += n
			}
			if sum != test.want {
				t.Errorf("launches %v, want %d\n%+v", plan.Launch, test.want, plan.InfeasibleRequests)
			}
		})
	}
}

// TestAPlanSaysWhatItAssumesOfObjectsThatAnAPIServerNeverHas checks nodes without pods in allocatable and pods that are
// listed twice.
func TestAPlanSaysWhatItAssumesOfObjectsThatAnAPIServerNeverHas(t *testing.T) {
	small, pod := `{"cpu": "10m", "memory": "1Mi"}`, podOn("n1", `, "namespace": "x"`, "1")
	file := func(allocatable, pods string) string {
		text := oneGroup(small, `{}`, allocatable, `, "kubePods": [`+pods+`], "complete": true,
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 300}]`)
		return strings.Replace(text, `"maxReplicas": 9`, `"maxReplicas": 900`, 1)
	}
	for name, test := range map[string]struct {
		file, code, object string
		launch             int
	}{
		"as the kubelet reports it":   {file(`{"cpu": "64", "memory": "64Gi", "pods": "200"}`, ""), "", "", 199}, // one is the head
		"without pods":                {file(`{"cpu": "64", "memory": "64Gi"}`, ""), planner.FindingNodePodsUnknown, "Node n1", 109},
		"without pods, and one there": {file(`{"cpu": "64", "memory": "64Gi", "nvidia.com/gpu": "2"}`, pod), planner.FindingNodePodsUnknown, "Node n1", 109},
		"a pod that is listed twice":  {file(`{"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "2"}`, pod+", "+pod), planner.FindingPodRepeated, "Pod x/p", 109},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, test.file)
			launch, found := 0, []string{}
			for _, n := range plan.Launch {
				launch += n
			}
			for _, f := range plan.Findings {
				if f.Code == planner.FindingNodePodsUnknown || f.Code == planner.FindingPodRepeated {
					found = append(found, f.Code+" "+f.Object)
				}
			}
			if launch != test.launch || strings.Join(found, ", ") != strings.TrimSpace(test.code+" "+test.object) {
				t.Errorf("launches %d with %q, want %d with %s %s; %+v", launch, found, test.launch, test.code, test.object, plan.InfeasibleRequests)
			}
		})
	}
}

func TestKeysOfTopologyLabelsAreNamesOfLabels(t *testing.T) {
	for labels, want := range map[string]string{
		`{"nvidia.com/gpu.clique": "ray.io/gpu-domain"}`: "",
		`{"a b": "ray.io/gpu-domain"}`:                   `"a b" is not a label's name`,
		`{"nvidia.com/gpu.clique": "a/b/c"}`:             `"a/b/c" is not a label's name`,
	} {
		file := oneGroup(`{"cpu": "1"}`, `{}`, `{"cpu": "4", "pods": "110"}`, `, "kubePods": [], "topologyLabels": `+labels)
		code, out, errOut := command(t, file, "autoscaler", "plan", "--snapshot", "-")
		if (code == cli.ExitOK) != (want == "") || want != "" && !strings.Contains(errOut, "topologyLabels: "+want) {
			t.Errorf("%s: exit %d, %s%s", labels, code, errOut, out)
		}
	}
}

// TestTheHeadComesBeforeWorkers checks clusters of which nothing runs yet: the head takes its part of the nodes, and work
// that fits on it needs no worker.
func TestTheHeadComesBeforeWorkers(t *testing.T) {
	const file = `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {"enableInTreeAutoscaling": INTREE,
		"headGroupSpec": {"rayStartParams": {PARAMS}, "template": {"spec": {"containers": [{"name": "ray", "resources": {"limits": {"cpu": "4", "memory": "8Gi"HEADGPU}}}]}}},
		"workerGroupSpecs": [{"groupName": "g", "minReplicas": 0, "maxReplicas": 9, "rayStartParams": {},
			"template": {"spec": {"containers": [{"name": "ray", "resources": {"limits": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}}}]}}}]}},
		"kubeNodes": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "4"}}}],
		"kubePods": [PODS], "complete": COMPLETE, "pendingRequests": [{"resources": {ASKED}, "count": 8}]}`
	const noWork, head = `"num-cpus": "0", "num-gpus": "0"`, `{"metadata": {"name": "h", "namespace": "n", "labels": {"ray.io/cluster": "c", "ray.io/node-type": "head"}},
		"spec": {"nodeName": "n1", "containers": [{"name": "ray", "resources": {"limits": {"cpu": "4", "memory": "8Gi"}}}]}}`
	for name, test := range map[string]struct {
		params, gpu, pods, complete, inTree, asked string
		want                                       int
	}{
		"a head with CPUs leaves room for three of four":   {noWork, "", "", "true", "false", `"GPU": 1`, 3},
		"so does one that runs":                            {noWork, "", head, "true", "false", `"GPU": 1`, 3},
		"where nodes may be added, it leaves room for all": {noWork, "", "", "false", "false", `"GPU": 1`, 8},
		"with GPUs it takes cards":                         {noWork, `, "nvidia.com/gpu": "2"`, "", "true", "false", `"GPU": 1`, 2},
		"the autoscaler beside it takes half a CPU":        {noWork, "", "", "true", "true", `"GPU": 1`, 2},
		"four of eight tasks run on the head":              {"", "", "", "true", "false", `"CPU": 1`, 1},
		"a head without CPUs runs none":                    {noWork, "", "", "true", "false", `"CPU": 1`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("PARAMS", test.params, "HEADGPU", test.gpu, "PODS", test.pods, "COMPLETE", test.complete,
				"INTREE", test.inTree, "ASKED", test.asked).Replace(file)
			if plan := planOf(t, text); plan.Launch["g"] != test.want {
				t.Errorf("launches %v, want %d\n%+v", plan.Launch, test.want, plan.InfeasibleRequests)
			}
		})
	}
}
