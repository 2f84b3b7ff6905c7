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

// fitCase is a worker group whose pods no node can hold: what a pod of it has, and the nodes.
type fitCase struct {
	// numGPUs and limits are those of a pod; pod is more of the template's spec.
	numGPUs int
	limits  string
	// labels and allocatable are those of each node; taints may be empty.
	labels, allocatable, taints string
	// why is part of the node's own reason.
	why string
}

const (
	eightCores = `"cpu": "64", "memory": "512Gi", "pods": "110", "ephemeral-storage": "100Gi"`
	anyPod     = `"cpu": "1", "memory": "1Gi"`
)

// fitCases are the cases of pods that no node can hold.
var fitCases = map[string]fitCase{
	"gpu-mem above a card": {
		1, anyPod + `, "aliyun.com/gpu-mem": "16"`,
		`"aliyun.com/gpu-count": "2", "aliyun.com/gpu-mem": "30", "nvidia.com/gpu.product": "Tesla-T4"`,
		eightCores + `, "aliyun.com/gpu-mem": "30", "aliyun.com/gpu-count": "2"`, "", "has cards of aliyun.com/gpu-mem 15",
	},
	"more GPUs than a node has": {8, anyPod + `, "nvidia.com/gpu": "8"`, "", eightCores + `, "nvidia.com/gpu": "4"`, "", "has nvidia.com/gpu 4 where 8 is needed"},
	"memory alone on core_mem": {
		1, anyPod + `, "aliyun.com/gpu-mem": "8"`, `"ack.node.gpu.schedule": "core_mem"`,
		eightCores + `, "aliyun.com/gpu-mem": "60", "aliyun.com/gpu-count": "4", "aliyun.com/gpu-core.percentage": "400"`, "",
		"aliyun.com/gpu-core.percentage only",
	},
	"ephemeral storage": {1, anyPod + `, "nvidia.com/gpu": "1", "ephemeral-storage": "500Gi"`, "", eightCores + `, "nvidia.com/gpu": "4"`, "", "has ephemeral-storage 100.0 GiB where 500.0 GiB"},
	"a taint on every node": {
		1, anyPod + `, "nvidia.com/gpu": "1"`, "", eightCores + `, "nvidia.com/gpu": "4"`,
		`[{"key": "team", "value": "a", "effect": "NoSchedule"}]`, "has taint team=a:NoSchedule",
	},
	"more CPU than a node has": {1, `"cpu": "128", "memory": "1Gi"`, "", eightCores, "", "has cpu 64 where 128"},
	"a label that no node has": {1, anyPod, "", eightCores, "", "lacks label disk=fast"},
}

// snapshot draws the case: three nodes of pool gpu that may not grow, and demand for 9 pods.
func (c fitCase) snapshot(selector, more string) string {
	if c.why == "lacks label disk=fast" {
		selector = strings.Trim(selector+`, "disk": "fast"`, ", ")
	}
	group := func(name, limits, selector string, price int) string {
		return fmt.Sprintf(`{"groupName": %q, "replicas": 0, "minReplicas": 0, "maxReplicas": 50, "rayStartParams": {"num-gpus": "%d", "num-cpus": "1"},
			"template": {"metadata": {"annotations": {"heliostat.dev/price": "%d"}}, "spec": {"nodeSelector": {%s}, "containers": [{"name": "ray", "resources": {"limits": {%s}, "requests": {%s}}}]}}}`,
			name, c.numGPUs, price, selector, limits, limits)
	}
	groups := group("g", c.limits, selector, 1)
	if strings.Contains(more, "#second") {
		groups = group("a", c.limits, selector, 1) + "," + group("z", `"cpu": "1", "memory": "1Gi"`, "", 9)
	}
	labels := `"agentpool": "gpu"`
	if c.labels != "" {
		labels += ", " + c.labels
	}
	taints := c.taints
	if taints == "" {
		taints = "[]"
	}
	var nodes []string
	for i := range 3 {
		nodes = append(nodes, fmt.Sprintf(`{"metadata": {"name": "n%d", "labels": {"kubernetes.io/hostname": "n%d", %s}}, "spec": {"taints": %s}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {%s}, "allocatable": {%s}}}`,
			i, i, labels, taints, c.allocatable, c.allocatable))
	}
	if strings.Contains(more, "#second") {
		nodes = append(nodes, `{"metadata": {"name": "plain"}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"}}}`)
	}
	return `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {
		"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}}, "workerGroupSpecs": [` + groups + `]}},
		"kubeNodes": [` + strings.Join(nodes, ",") + `], "pools": [{"name": "gpu", "maxNodes": 3}], "pendingRequests": [{"resources": {"CPU": 1}, "count": 9}]` +
		strings.ReplaceAll(more, "#second", "") + `}`
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

// TestAGroupWhosePodsFitNowhere plans each case with three kinds of proof, and without any.
func TestAGroupWhosePodsFitNowhere(t *testing.T) {
	for name, c := range fitCases {
		for _, proof := range []struct {
			name, selector, more string
			proven               bool
		}{
			{"complete", "", `, "complete": true`, true},
			{"its selector", `"agentpool": "gpu"`, "", true},
			{"its hostname", `"kubernetes.io/hostname": "n1"`, "", true},
			{"without proof", "", "", false},
		} {
			t.Run(name+"/"+proof.name, func(t *testing.T) {
				plan := planOf(t, c.snapshot(proof.selector, proof.more))
				want, code, unmet, severity := 1, "trying", planner.Trying, raydemand.Warning
				if proof.proven {
					want, code, unmet, severity = 0, "closed", planner.Impossible, raydemand.Error
				}
				if got := plan.Launch["g"]; got != want {
					t.Errorf("launches %d, want %d", got, want)
				}
				if r := plan.Groups[0].Reasons; r[len(r)-1].Code != code || !strings.Contains(r[len(r)-1].Message, c.why) {
					t.Errorf("reasons %+v, want %s: … %s", r, code, c.why)
				}
				if len(plan.InfeasibleRequests) != 1 || plan.InfeasibleRequests[0].Reason.Code != unmet || !strings.Contains(plan.InfeasibleRequests[0].Reason.Message, c.why) {
					t.Errorf("unmet %+v, want %s: … %s", plan.InfeasibleRequests, unmet, c.why)
				}
				if !findsNoNode(plan, severity) {
					t.Errorf("findings %+v, want group-no-node with severity %s", plan.Findings, severity)
				}
			})
		}
	}
}

func findsNoNode(plan planner.Plan, severity raydemand.Severity) bool {
	for _, f := range plan.Findings {
		if f.Code == "group-no-node" && f.Severity == severity {
			return true
		}
	}
	return false
}

// TestAGroupThatFitsGoesBeforeOneThatDoesNot plans each case beside group z, whose pods fit: z sorts last and costs
// nine times as much.
func TestAGroupThatFitsGoesBeforeOneThatDoesNot(t *testing.T) {
	for name, c := range fitCases {
		for _, more := range []string{"#second", `#second, "complete": true`} {
			t.Run(name+more, func(t *testing.T) {
				plan := planOf(t, strings.Replace(c.snapshot("", more), `"count": 9`, `"count": 4`, 1))
				if plan.Launch["z"] != 4 || plan.Launch["a"] != 0 {
					t.Errorf("launches %v, want 4 of z alone\n%+v", plan.Launch, plan.Groups)
				}
			})
		}
	}
}

// TestWhatTheGroupThatFitsLeavesIsTried plans 9 tasks, of which the group that fits has room for 4.
func TestWhatTheGroupThatFitsLeavesIsTried(t *testing.T) {
	plan := planOf(t, fitCases["more GPUs than a node has"].snapshot("", "#second"))
	if plan.Launch["z"] < 4 || plan.Launch["a"] > 1 {
		t.Errorf("launches %v, want what fits of z, and one of a", plan.Launch)
	}
}

// shapeOf draws pool gpu without nodes, with a shape of four GPUs.
func shapeOf(maxNodes string) string {
	return `{"name": "gpu"` + maxNodes + `, "shape": {"allocatable": {` + eightCores + `, "nvidia.com/gpu": 4}}}`
}

// TestACompleteListOfPoolsNamesThePoolWithoutAShape checks that a group that is tried although all pools are declared
// says which of them may hold its pods.
func TestACompleteListOfPoolsNamesThePoolWithoutAShape(t *testing.T) {
	plan := planOf(t, `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {
		"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}}, "workerGroupSpecs": [{"groupName": "g", "replicas": 0, "minReplicas": 0, "maxReplicas": 50,
		"rayStartParams": {"num-cpus": "1"}, "template": {"spec": {"containers": [{"name": "ray", "resources": {"limits": {`+anyPod+`, "nvidia.com/gpu": "8"}}}]}}}]}},
		"complete": true, "pools": [`+shapeOf("")+`, {"name": "unknown", "maxNodes": 2}], "pendingRequests": [{"resources": {"CPU": 1}, "count": 9}]}`)
	got := fmt.Sprint(plan.Groups[0].Reasons)
	if !strings.Contains(got, "what new nodes of pool unknown have is not known") || strings.Contains(got, "nobody declared") {
		t.Error(got)
	}
}

// TestProofComesFromPools plans a group of one kind of pods with pools without nodes.
func TestProofComesFromPools(t *testing.T) {
	const cpuNodes = `"kubeNodes": [{"metadata": {"name": "n1", "labels": {"agentpool": "cpu"}}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {` + eightCores + `}}}], `
	for name, c := range map[string]struct {
		gpus            int
		selector, nodes string
		pools           string
		launch          int
		code            string // of the unmet request; empty if all is served
	}{
		"the shape fits": {4, "", cpuNodes, `"pools": [` + shapeOf("") + `]`, 9, ""},
		"and is selected by a label that it need not say":       {4, `"agentpool": "gpu"`, cpuNodes, `"pools": [` + shapeOf("") + `]`, 9, ""},
		"the pool may have no node":                             {4, "", cpuNodes, `"pools": [` + shapeOf(`, "maxNodes": 0`) + `]`, 0, planner.Capped},
		"and is selected":                                       {4, `"agentpool": "gpu"`, cpuNodes, `"pools": [` + shapeOf(`, "maxNodes": 0`) + `]`, 0, planner.Capped},
		"and nothing but the name is known":                     {4, `"agentpool": "gpu"`, cpuNodes, `"pools": [{"name": "gpu", "maxNodes": 0}]`, 0, planner.Capped},
		"and all pools are declared":                            {4, "", cpuNodes, `"complete": true, "pools": [` + shapeOf(`, "maxNodes": 0`) + `]`, 0, planner.Capped},
		"and nothing else is known":                             {4, "", cpuNodes, `"pools": [{"name": "gpu", "maxNodes": 0}]`, 0, planner.Capped},
		"of any node either":                                    {4, "", "", `"pools": [{"name": "gpu", "maxNodes": 0}]`, 0, planner.Capped},
		"without any node":                                      {4, `"agentpool": "gpu"`, "", `"pools": [{"name": "gpu", "maxNodes": 0}]`, 0, planner.Capped},
		"the shape is too small":                                {8, "", cpuNodes, `"pools": [` + shapeOf("") + `]`, 1, planner.Trying},
		"and is selected, so it is proven":                      {8, `"agentpool": "gpu"`, cpuNodes, `"pools": [` + shapeOf("") + `]`, 0, planner.Impossible},
		"and all pools are declared, so it is proven":           {8, "", cpuNodes, `"complete": true, "pools": [` + shapeOf("") + `]`, 0, planner.Impossible},
		"the same in the form of the file":                      {8, "", cpuNodes, `"pools": {"complete": true, "pools": [` + shapeOf("") + `]}`, 0, planner.Impossible},
		"without the proof in the form of the file":             {8, "", cpuNodes, `"pools": {"pools": [` + shapeOf("") + `]}`, 1, planner.Trying},
		"a pool of unknown shape may fit":                       {8, "", cpuNodes, `"complete": true, "pools": [{"name": "gpu"}]`, 1, planner.Trying},
		"a pool that is not known is selected":                  {4, `"agentpool": "other"`, cpuNodes, `"pools": [` + shapeOf("") + `]`, 1, planner.Trying},
		"and all pools are declared, so there is none":          {4, `"agentpool": "other"`, cpuNodes, `"complete": true, "pools": [` + shapeOf("") + `]`, 0, planner.Impossible},
		"a host that is not there":                              {4, `"kubernetes.io/hostname": "n9"`, cpuNodes, `"pools": [` + shapeOf("") + `]`, 0, planner.Impossible},
		"nothing is known of the nodes, so it is planned as is": {8, "", "", `"pools": [{"name": "gpu", "maxNodes": 5}]`, 9, ""},
		"a zone without a node yet is no proof":                 {0, `"agentpool": "cpu", "topology.kubernetes.io/zone": "b"`, strings.Replace(cpuNodes, `"agentpool": "cpu"`, `"agentpool": "cpu", "topology.kubernetes.io/zone": "a"`, 1), `"pools": []`, 1, planner.Trying},
		"a cordoned node shows what its pool could add":         {0, `"agentpool": "cpu"`, strings.Replace(cpuNodes, `"status"`, `"spec": {"unschedulable": true}, "status"`, 1), `"pools": []`, 9, ""},
		"a node that is going shows it too":                     {0, `"agentpool": "cpu"`, strings.Replace(cpuNodes, `"status"`, `"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}, "status"`, 1), `"pools": []`, 1, planner.Trying},
	} {
		t.Run(name, func(t *testing.T) {
			limits := anyPod
			if c.gpus > 0 {
				limits += fmt.Sprintf(`, "nvidia.com/gpu": "%d"`, c.gpus)
			}
			text := `{"rayCluster": {"kind": "RayCluster", "metadata": {"name": "c", "namespace": "n"}, "spec": {
				"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}}, "workerGroupSpecs": [{"groupName": "g", "replicas": 0, "minReplicas": 0, "maxReplicas": 50,
				"rayStartParams": {"num-cpus": "1"}, "template": {"spec": {"nodeSelector": {` + c.selector + `}, "containers": [{"name": "ray", "resources": {"limits": {` + limits + `}}}]}}}]}},
				` + c.nodes + c.pools + `, "kubeDeviceClasses": [], "pendingRequests": [{"resources": {"CPU": 1}, "count": 9}]}`
			plan := planOf(t, text)
			code := ""
			if len(plan.InfeasibleRequests) > 0 {
				code = plan.InfeasibleRequests[0].Reason.Code
			}
			if plan.Launch["g"] != c.launch || code != c.code {
				t.Errorf("launches %d with code %q, want %d with %q\n%+v", plan.Launch["g"], code, c.launch, c.code, plan.Groups)
			}
		})
	}
}
