package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// object is a JSON object.
type object = map[string]any

// fault is what doctor and plan both say about a finding.
type fault struct{ Code, Severity, Field, Seen string }

func (f fault) String() string { return f.Severity + " " + f.Code + " " + f.Seen }

// verdicts are what doctor says about a RayCluster with one worker group, and what a plan does with it.
type verdicts struct {
	doctor, plan []fault
	launching    int // how many of the demanded GPUs the plan launches pods for
}

func (v verdicts) doctorHas(codes ...string) bool { return hasCode(v.doctor, codes) }
func (v verdicts) planHas(codes ...string) bool   { return hasCode(v.plan, codes) }

func severity(all []fault, code string) string {
	for _, f := range all {
		if f.Code == code {
			return f.Severity
		}
	}
	return ""
}

func hasCode(all []fault, codes []string) bool {
	return slices.ContainsFunc(all, func(f fault) bool { return slices.Contains(codes, f.Code) })
}

// Codes of the doctor, by what they say about a worker group.
var (
	landsNowhere = []string{"group-no-node", "toleration-missing"}
	explainsGPUs = []string{"num-gpus-mismatch", "num-gpus-differs", "gpu-uncounted", "gpu-shares-counted", "gpu-two-resources",
		"gpu-outside-ray-container", "resources-not-parsed", "gpu-resource-unknown", "gpu-shares-several", "gpu-not-whole"}
)

// drawnTemplate draws a pod template: requests that schedulers know and that they refuse, right and wrong labels.
func drawnTemplate(t *rapid.T) object {
	limits := object{"cpu": "4", "memory": rapid.SampledFrom([]string{"16Gi", "16Gi", "9000Gi"}).Draw(t, "memory")}
	labels, annotations := object{}, object{}
	units := func(from ...string) string { return rapid.SampledFrom(from).Draw(t, "units") }
	resources, beside := object{"limits": limits}, object{"name": "logs", "image": "logs"}
	switch rapid.SampledFrom([]string{"card", "card", "mem", "mem", "cores", "mig", "vgpu", "hami", "amd", "gaudi", "neuron", "kai", "vendors", "misplaced", "requests",
		"differs", "half", "beside", "koordinator"}).Draw(t, "kind") {
	case "card":
		limits["nvidia.com/gpu"] = units("1", "2", "8", "9")
	case "mem":
		limits["aliyun.com/gpu-mem"] = units("4", "15", "16", "20", "30", "31")
		if count := units("", "1", "2", "4", "8"); count != "" {
			labels["aliyun.com/gpu-count"] = count
		}
	case "cores":
		limits["aliyun.com/gpu-mem"], limits["aliyun.com/gpu-core.percentage"] = units("4", "16"), units("7", "20", "100")
	case "mig":
		limits["nvidia.com/mig-1g.10gb"] = units("1", "7", "60")
	case "vgpu":
		limits["volcano.sh/vgpu-number"], limits["volcano.sh/vgpu-memory"] = units("1", "2"), units("2000", "90000")
	case "hami":
		limits["nvidia.com/gpu"], limits["nvidia.com/gpumem"] = "1", units("2000", "90000")
	case "amd":
		limits[units("amd.com/gpu", "amd.com/cpx_nps4", "amd.com/gpu.vram")] = "2"
	case "gaudi":
		limits["habana.ai/gaudi"] = units("1", "8")
	case "neuron":
		limits[units("aws.amazon.com/neuron", "aws.amazon.com/neuroncore")] = "1"
	case "kai":
		annotations["gpu-fraction"] = units("0.5", "1.5")
		annotations["gpu-fraction-num-devices"] = units("1", "2", "9")
	case "vendors":
		limits["nvidia.com/gpu"], limits["amd.com/gpu"] = "1", "1"
	case "misplaced":
		resources["nvidia.com/gpu"] = 1
	case "requests":
		resources["requests"] = object{"nvidia.com/gpu": units("1", "2")}
	case "differs":
		limits["nvidia.com/gpu"], resources["requests"] = "2", object{"nvidia.com/gpu": "1"}
	case "half":
		limits["nvidia.com/gpu"] = "0.5"
	case "beside":
		beside["resources"] = object{"limits": object{"nvidia.com/gpu": units("1", "9")}}
	case "koordinator":
		limits["koordinator.sh/gpu"] = units("50", "200")
	}
	spec := object{"containers": []any{object{"name": "ray", "image": "rayproject/ray:2.60.0", "resources": resources}, beside}}
	if rapid.Bool().Draw(t, "tolerates") {
		spec["tolerations"] = []any{object{"key": "nvidia.com/gpu", "operator": "Exists"}, object{"key": "habana.ai/gaudi", "operator": "Exists"}}
	}
	if pool := units("", "", "cards", "other"); pool != "" {
		spec["nodeSelector"] = object{"team/pool": pool}
	}
	return object{"metadata": object{"labels": labels, "annotations": annotations}, "spec": spec}
}

// drawnCluster draws a RayCluster with one worker group.
func drawnCluster(t *rapid.T) object {
	params, more := object{}, object{}
	if rapid.IntRange(0, 5).Draw(t, "resources") == 0 {
		more["GPU"] = rapid.SampledFrom([]string{"1", "2"}).Draw(t, "GPU")
	}
	if gpus := rapid.SampledFrom([]string{"", "", "0", "1", "2", "4"}).Draw(t, "num-gpus"); gpus != "" {
		params["num-gpus"] = gpus
	}
	head := object{"name": "head", "image": "rayproject/ray:2.60.0", "env": []any{object{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}},
		"resources": object{"limits": object{"cpu": "1", "memory": "1Gi"}}}
	return object{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": object{"name": "c", "namespace": "n"}, "spec": object{
		"headGroupSpec": object{"rayStartParams": object{"num-cpus": "0"}, "template": object{"spec": object{"containers": []any{head}}}},
		"workerGroupSpecs": []any{object{"groupName": "g", "replicas": 0, "minReplicas": 0, "maxReplicas": 9, "rayStartParams": params, "resources": more,
			"template": drawnTemplate(t)}},
	}}
}

// nodeKinds are nodes with labels and GPUs, of which a draw has some.
var nodeKinds = map[string][2]object{
	"cards": {{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "1",
		"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/mig.strategy": "single"}, {"nvidia.com/gpu": "8"}},
	"shared": {{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4",
		"nvidia.com/gpu.sharing-strategy": "time-slicing"}, {"nvidia.com/gpu": "4"}},
	"mem": {{"aliyun.accelerator/nvidia_count": "4", "aliyun.accelerator/nvidia_mem": "15109MiB", "aliyun.accelerator/nvidia_name": "Tesla-T4"},
		{"aliyun.com/gpu-mem": "60", "aliyun.com/gpu-count": "4"}},
	"core_mem": {{"ack.node.gpu.schedule": "core_mem", "aliyun.accelerator/nvidia_count": "2", "aliyun.accelerator/nvidia_mem": "15109MiB"},
		{"aliyun.com/gpu-mem": "30", "aliyun.com/gpu-core.percentage": "200"}},
	"mig": {{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "1", "nvidia.com/mig.strategy": "mixed",
		"nvidia.com/mig-1g.10gb.count": "7"}, {"nvidia.com/mig-1g.10gb": "7"}},
	"vgpu":   {{}, {"volcano.sh/vgpu-number": "10", "volcano.sh/vgpu-memory": "81920", "volcano.sh/vgpu-cores": "100"}},
	"amd":    {{"amd.com/gpu.vram": "191G"}, {"amd.com/gpu": "8"}},
	"gaudi":  {{}, {"habana.ai/gaudi": "8"}},
	"neuron": {{"node.kubernetes.io/instance-type": "trn1.32xlarge"}, {"aws.amazon.com/neuron": "16", "aws.amazon.com/neuroncore": "32"}},
	"none":   {{}, {}},
}

func drawnNodes(t *rapid.T) []any {
	var nodes []any
	kinds := make([]string, 0, len(nodeKinds))
	for kind := range nodeKinds {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for i, kind := range rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 3).Draw(t, "nodes") {
		labels, allocatable := object{"team/pool": kind}, object{"cpu": "64", "memory": "512Gi", "pods": "110"}
		for key, value := range nodeKinds[kind][0] {
			labels[key] = value
		}
		for key, value := range nodeKinds[kind][1] {
			allocatable[key] = value
		}
		spec := object{}
		switch rapid.SampledFrom([]string{"", "", "", "tainted", "gke", "cordoned"}).Draw(t, "state") {
		case "gke":
			labels["cloud.google.com/gke-nodepool"] = kind
			fallthrough
		case "tainted":
			spec["taints"] = []any{object{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}}
		case "cordoned":
			spec["unschedulable"] = true
		}
		nodes = append(nodes, object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": fmt.Sprintf("n%d", i), "labels": labels}, "spec": spec,
			"status": object{"capacity": allocatable, "allocatable": allocatable, "conditions": []any{object{"type": "Ready", "status": "True"}}}})
	}
	return nodes
}

// judged runs doctor and plan.
func judged(t *rapid.T, tt *testing.T, cluster object, nodes []any, pools object) verdicts {
	var v verdicts
	file := filepath.Join(tt.TempDir(), "pools.json")
	text, err := json.Marshal(pools)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(object{"kind": "List", "items": append([]any{cluster}, nodes...)})
	if err != nil {
		t.Fatal(err)
	}
	_, out, errOut := command(tt, string(list), "autoscaler", "doctor", "-f", "-", "--pools", file, "-o", "json")
	found := struct{ Findings []fault }{}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v: %s", err, errOut)
	}
	v.doctor = found.Findings
	demand := []any{object{"resources": object{"GPU": 1}, "count": 3}}
	snapshot, err := json.Marshal(object{"rayCluster": cluster, "kubeNodes": nodes, "kubePods": []any{}, "pools": pools, "pendingRequests": demand})
	if err != nil {
		t.Fatal(err)
	}
	_, out, errOut = command(tt, string(snapshot), "autoscaler", "plan", "--snapshot", "-")
	plan := struct {
		Findings []fault
		Summary  []struct{ Launching int }
	}{}
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatalf("%v: %s", err, errOut)
	}
	v.plan = plan.Findings
	for _, s := range plan.Summary {
		v.launching += s.Launching
	}
	return v
}

// Doctor and plan judge one template by one reading, so they agree.
func TestDoctorAndPlanAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cluster, nodes := drawnCluster(rt), drawnNodes(rt)
		pools := object{"complete": rapid.Bool().Draw(rt, "complete"), "pools": []any{}}
		v := judged(rt, t, cluster, nodes, pools)
		if err := v.disagree(); err != "" {
			rt.Fatalf("%s\ndoctor %v\nplan %v, launching %d", err, v.doctor, v.plan, v.launching)
		}
	})
}

// disagree returns in what doctor and plan contradict each other.
func (v verdicts) disagree() string {
	broken := slices.ContainsFunc(v.plan, func(f fault) bool { return f.Severity == "error" && f.Code != "group-no-node" })
	clean := !slices.ContainsFunc(v.doctor, func(f fault) bool { return f.Severity != "info" })
	switch {
	case v.planHas("group-no-node") != v.doctorHas(landsNowhere...) && !broken:
		return "one of them says that the group lands nowhere"
	case v.doctorHas("group-no-node") && severity(v.doctor, "group-no-node") != severity(v.plan, "group-no-node") && !broken:
		return "one of them has proof that the group lands nowhere"
	case v.launching > 0 && severity(v.plan, "group-no-node") == "error":
		return "the plan launches pods although no node will ever hold them"
	case v.doctorHas("gpu-mem-above-card") && !v.planHas("group-no-node") && !broken:
		return "a card is too small, and the plan finds a place"
	case v.doctorHas("num-gpus-mismatch") && !v.planHas("num-gpus-mismatch"):
		return "only doctor says that num-gpus is wrong"
	case v.planHas("num-gpus-mismatch") && !v.doctorHas(explainsGPUs...) && !broken:
		return "only the plan says that num-gpus is wrong"
	case broken && clean:
		return "the plan has an error and doctor none"
	}
	return ""
}
