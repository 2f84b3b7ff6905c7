package doctor_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/internal/doctor"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// field sets a value deep in an object of a manifest, or removes it.
func field(t *testing.T, object map[string]any, pointer string, to any) {
	t.Helper()
	change := map[string]any{"op": "add", "path": pointer, "value": to}
	if to == nil {
		change["op"] = "remove"
	}
	text, err := json.Marshal([]any{change})
	must(t, err)
	all, err := patched(t, []map[string]any{object}, nameOf(object), string(text))
	must(t, err)
	clear(object)
	maps.Copy(object, all[0])
}

// nodeLike returns another node of the same kind.
func nodeLike(t *testing.T, node map[string]any) map[string]any {
	t.Helper()
	other := runtime.DeepCopyJSON(node)
	field(t, other, "/metadata/name", "another")
	return other
}

// sidecar moves the GPUs of the manifest to the Ray container and an init container.
func sidecar(t *testing.T, cluster map[string]any, restartPolicy any) {
	t.Helper()
	gpu := map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}}
	field(t, cluster, worker+"/containers", []any{map[string]any{"name": "ray-worker", "image": "i", "resources": gpu}})
	field(t, cluster, worker+"/initContainers",
		[]any{map[string]any{"name": "dcgm", "image": "i", "resources": gpu, "restartPolicy": restartPolicy}})
}

const worker = "/spec/workerGroupSpecs/0/template/spec"

// set is a change of one field of an object.
func set(i int, pointer string, to any) func(t *testing.T, all []map[string]any) {
	return func(t *testing.T, all []map[string]any) { field(t, all[i], pointer, to) }
}

// Each case changes a manifest that shows a finding, so that the finding must disappear or must stay.
func TestFindingsDisappearWithTheirReason(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		change func(t *testing.T, all []map[string]any)
		found  bool
	}{
		"a GPU of AMD counts too": {"gpu-limit-differs", set(0, worker+"/containers/0/resources", map[string]any{"limits": map[string]any{"amd.com/gpu": "2"}, "requests": map[string]any{"amd.com/gpu": 1}}), true},
		"2 and 2000m are equal":   {"gpu-limit-differs", set(0, worker+"/containers/0/resources/requests/nvidia.com~1gpu", "2000m"), false},
		"a negative GPU": {"gpu-not-whole", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/containers/0/resources/limits/nvidia.com~1gpu", "-1")
			field(t, all[0], worker+"/containers/0/resources/requests/nvidia.com~1gpu", "-1")
		}, true},
		"a profile that only another card has": {"mig-profile-unknown", set(0, worker+"/nodeSelector", map[string]any{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}), false},
		"a profile that no card has": {"mig-profile-unknown", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/nodeSelector", nil)
			field(t, all[0], worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "nvidia.com/mig-5g.99gb": "1"})
		}, true},
		"another node has the mixed strategy": {"mig-strategy", func(t *testing.T, all []map[string]any) {
			all[2] = nodeLike(t, all[1])
			field(t, all[2], "/metadata/labels/nvidia.com~1mig.strategy", "mixed")
		}, false},
		"another node has the same strategy": {"mig-strategy", func(t *testing.T, all []map[string]any) {
			all[2] = nodeLike(t, all[1])
		}, true},
		"strategy none": {"mig-strategy", set(1, "/metadata/labels/nvidia.com~1mig.strategy", "none"), true},
		"another node does not report the memory of a card": {"gpu-mem-above-card", func(t *testing.T, all []map[string]any) {
			all[2] = nodeLike(t, all[1])
			field(t, all[2], "/metadata/labels", map[string]any{})
			field(t, all[2], "/status/allocatable/aliyun.com~1gpu-count", nil)
			field(t, all[2], "/status/capacity/aliyun.com~1gpu-count", nil)
		}, false},
		"another node has cards of the same memory": {"gpu-mem-above-card", func(t *testing.T, all []map[string]any) {
			all[2] = nodeLike(t, all[1])
		}, true},
		"unknown memory of a card": {"gpu-mem-above-card", func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/metadata/labels", map[string]any{})
			field(t, all[1], "/status/allocatable/aliyun.com~1gpu-count", nil)
			field(t, all[1], "/status/capacity/aliyun.com~1gpu-count", nil)
		}, false},
		"the pod label spreads the memory over two cards": {"gpu-mem-above-card", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"labels": map[string]any{"aliyun.com/gpu-count": "2"}})
			field(t, all[0], worker+"/containers/0/resources/limits/aliyun.com~1gpu-mem", "20")
		}, false},
		"two cards are too small as well": {"gpu-mem-above-card", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"labels": map[string]any{"aliyun.com/gpu-count": "2"}})
			field(t, all[0], worker+"/containers/0/resources/limits/aliyun.com~1gpu-mem", "40")
		}, true},
		"cores of several cards": {"gpu-request-invalid", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/containers/0/resources/limits/aliyun.com~1gpu-mem", "16")
			field(t, all[0], worker+"/containers/0/resources/limits/aliyun.com~1gpu-core.percentage", "20")
		}, true},
		"a card for each of two GPUs":                       {"num-gpus-mismatch", spreadMemory("2"), false},
		"two cards and one GPU":                             {"num-gpus-mismatch", spreadMemory("1"), true},
		"a Gaudi card is declared in the group's resources": {"accelerator-uncounted", set(0, "/spec/workerGroupSpecs/0/resources", map[string]any{"HPU": "8"}), false},
		"a Gaudi card is no GPU":                            {"gpu-uncounted", set(0, worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "habana.ai/gaudi": "1"}), false},
		"Neuron devices":                                    {"accelerator-uncounted", set(0, worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "aws.amazon.com/neuron": "1"}), true},
		"the operator passes Neuron cores on":               {"accelerator-uncounted", set(0, worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "aws.amazon.com/neuroncore": "2"}), false},
		"a partition of an AMD card":                        {"gpu-uncounted", set(0, worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "amd.com/cpx_nps4": "2"}), true},
		"a label of AMD's in limits":                        {"gpu-resource-unknown", set(0, worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "amd.com/gpu": 1, "amd.com/gpu.vram": "64"}), true},
		"GPUs of two vendors":                               {"gpu-two-resources", set(0, worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi", "amd.com/gpu": 1, "nvidia.com/gpu": 1}), true},
		"a part of a card by KAI's annotation": {"gpu-uncounted", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"annotations": map[string]any{"gpu-fraction": "0.5"}})
			field(t, all[0], worker+"/containers/0/resources/limits", map[string]any{"cpu": "1", "memory": "1Gi"})
		}, true},
		"KAI's fraction of more than a card": {"gpu-fraction-refused", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata/annotations", map[string]any{"gpu-fraction": "1.5"})
			field(t, all[0], worker+"/containers/0/resources/limits/nvidia.com~1gpu", nil)
		}, true},
		"another Python":                    {"ray-version-differs", set(0, "/spec/rayClusterSpec"+strings.TrimPrefix(worker, "/spec")+"/containers/0/image", "rayproject/ray:2.52.0-py39-gpu"), true},
		"an image for GPUs, without Python": {"ray-version-differs", set(0, "/spec/rayClusterSpec"+strings.TrimPrefix(worker, "/spec")+"/containers/0/image", "rayproject/ray:2.52.0-gpu"), false},
		"an init container that inspects the GPU": {"gpu-outside-ray-container", func(t *testing.T, all []map[string]any) {
			sidecar(t, all[0], nil)
		}, false},
		"a sidecar that keeps a GPU": {"gpu-outside-ray-container", func(t *testing.T, all []map[string]any) {
			sidecar(t, all[0], "Always")
		}, true},
		"a list of GPUs":      {"gpu-visible-all", set(0, worker+"/containers/0/env", []any{map[string]any{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0,1"}}), true},
		"no GPUs are visible": {"gpu-visible-all", set(0, worker+"/containers/0/env", []any{map[string]any{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}}), false},
		"Kueue queues an elastic RayCluster with in-tree autoscaling": {"kueue-refuses", set(0, "/metadata/annotations", map[string]any{"kueue.x-k8s.io/elastic-job": "true"}), false},
		"Kueue wants the name of the head": {"kueue-refuses", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/metadata/annotations", map[string]any{"kueue.x-k8s.io/elastic-job": "true"})
			field(t, all[0], "/spec/workerGroupSpecs/0/groupName", "head")
		}, true},
		"the field backend of KubeRay 1.7": {"schema-violated", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/upgradeStrategy", nil)
			field(t, all[0], "/spec/gcsFaultToleranceOptions", map[string]any{"backend": "rocksdb"})
		}, false},
		"Redis without an address": {"schema-violated", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/upgradeStrategy", nil)
			field(t, all[0], "/spec/gcsFaultToleranceOptions", map[string]any{"redisUsername": map[string]any{"value": "a"}})
		}, true},
		"KAI's fraction and memory": {"gpu-fraction-refused", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata/annotations/gpu-memory", "2000")
			field(t, all[0], worker+"/containers/0/resources/limits/nvidia.com~1gpu", nil)
		}, true},
		"KAI's pods see the GPU that they share":          {"gpus-visible", set(0, "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"annotations": map[string]any{"gpu-memory": "2000"}}), false},
		"an image of another name, and an old rayVersion": {"ray-version-old", set(0, "/spec/headGroupSpec/template/spec/containers/0/image", "registry.example/llm:7"), true},
		"an image of Ray 2.40 counts, not rayVersion":     {"ray-version-old", set(0, "/spec/headGroupSpec/template/spec/containers/0/image", "registry.example/mirror/ray:2.40.0-gpu"), false},
		"an old image of two numbers": {"ray-version-old", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/headGroupSpec/template/spec/containers/0/image", "rayproject/ray:2.9")
			field(t, all[0], "/spec/rayVersion", nil)
		}, true},
		"nothing says the version": {"ray-version-old", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/headGroupSpec/template/spec/containers/0/image", "registry.example/llm:7")
			field(t, all[0], "/spec/rayVersion", nil)
		}, false},
		"a misplaced GPU is meant to be seen":                     {"gpus-visible", set(0, worker+"/containers/0/resources/nvidia.com~1gpu", 1), false},
		"limits with a GPU beside resources are meant to be seen": {"gpus-visible", set(0, worker+"/containers/0/limits", map[string]any{"nvidia.com/gpu": 1}), false},
		"a node with a bad GPU keeps all away":                    {"toleration-missing", set(1, "/spec/taints", []any{map[string]any{"key": "nvidia.com/gpu-xid-error", "effect": "NoExecute"}}), false},
		"a node that goes keeps all away":                         {"toleration-missing", set(1, "/spec/taints", []any{map[string]any{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}}), false},
		"a node that does not answer keeps all away":              {"toleration-missing", set(1, "/spec/taints", []any{map[string]any{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}}), false},
		"a taint that keeps TPUs away": {"toleration-missing", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/containers/0/resources", map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi", "google.com/tpu": "4"}})
			field(t, all[1], "/status/allocatable/google.com~1tpu", "4")
			field(t, all[1], "/spec/taints", []any{map[string]any{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}})
		}, true},
		"GKE's TPU taint": {"toleration-missing", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/containers/0/resources", map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi", "google.com/tpu": "4"}})
			field(t, all[1], "/metadata/labels/cloud.google.com~1gke-nodepool", "tpu")
			field(t, all[1], "/status/allocatable/google.com~1tpu", "4")
			field(t, all[1], "/spec/taints", []any{map[string]any{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}})
		}, false},
		"the resources declare the GPU": {"gpu-uncounted", set(0, "/spec/workerGroupSpecs/0/resources", map[string]any{"GPU": "1"}), false},
		"an unknown mode":               {"annotation-unreadable", set(0, "/metadata/annotations", map[string]any{"heliostat.dev/mode": "manage"}), true},
		"a variable instead of the field asks for v2": {"restart-policy", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/spec/autoscalerOptions/version", nil)
			field(t, all[0], "/spec/headGroupSpec/template/spec/containers/0/env", []any{map[string]any{"name": "RAY_enable_autoscaler_v2", "value": "1"}})
		}, true},
		"autoscaler v1 restarts workers": {"restart-policy", set(0, "/spec/autoscalerOptions/version", "v1"), false},
		"the operator has accepted the time-out": {"idle-timeout-refused", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/metadata/generation", 3)
			field(t, all[0], "/status", map[string]any{"observedGeneration": 3})
		}, false},
		"the operator has seen an older spec only": {"idle-timeout-refused", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/metadata/generation", 4)
			field(t, all[0], "/status", map[string]any{"observedGeneration": 3})
		}, true},
		"the condition of AKS is bad when True":         {"condition-bad", set(0, "/status/conditions", []any{map[string]any{"type": "XIDErrors", "status": "True"}}), true},
		"the condition of AKS is good when False":       {"condition-bad", set(0, "/status/conditions", []any{map[string]any{"type": "XIDErrors", "status": "False"}}), false},
		"one node is not cordoned":                      {"gpu-nodes-cordoned", set(1, "/spec/unschedulable", false), false},
		"a group without GPUs may have nodes elsewhere": {"toleration-missing", set(0, worker+"/containers/0/resources", map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}}), false},
		"a live pod tolerates, by an admission plugin": {"toleration-missing", func(t *testing.T, all []map[string]any) {
			all[2] = map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "w", "namespace": "ml",
				"labels": map[string]any{"ray.io/cluster": "llm", "ray.io/group": "a100", "ray.io/node-type": "worker"}},
				"spec": map[string]any{"containers": []any{}, "tolerations": []any{map[string]any{"key": "nvidia.com/gpu", "operator": "Exists"}}}}
		}, false},
		"an agent of CNI has not started":              {"toleration-missing", set(1, "/spec/taints/0/key", "node.cilium.io/agent-not-ready"), false},
		"the node is GKE's, which adds the toleration": {"toleration-missing", set(1, "/metadata/labels/cloud.google.com~1gke-nodepool", "gpu"), false},
		"several shares, and a node without MPS": {"mps-shares-several", func(t *testing.T, all []map[string]any) {
			other := nodeLike(t, all[1])
			field(t, other, "/metadata/labels/nvidia.com~1gpu.sharing-strategy", "time-slicing")
			all[2] = other
		}, false},
		"a claim of a network card":             {"claim-uncounted", set(1, "/spec/spec/devices/requests/0/exactly/deviceClassName", "rdma.example.com"), false},
		"a claim that is not among the objects": {"claim-uncounted", set(1, "/metadata/name", "another"), false},
		"a claim whose name looks like GPUs": {"claim-uncounted", func(t *testing.T, all []map[string]any) {
			field(t, all[1], "/metadata/name", "another")
			field(t, all[0], worker+"/resourceClaims/0/resourceClaimTemplateName", "one-gpu")
		}, true},
		"the format before v1":                        {"claim-uncounted", set(1, "/spec/spec/devices/requests", []any{map[string]any{"name": "a", "deviceClassName": "mig.nvidia.com"}}), true},
		"the first of several classes":                {"claim-uncounted", set(1, "/spec/spec/devices/requests", []any{map[string]any{"name": "a", "firstAvailable": []any{map[string]any{"deviceClassName": "gpu.nvidia.com"}}}}), true},
		"a claim that the Ray container does not use": {"claim-uncounted", set(0, worker+"/containers/0/resources/claims", []any{}), false},
		"the name of a DeviceClass of GPUs": {"claim-uncounted", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/containers/0/resources/claims", []any{})
			field(t, all[0], worker+"/containers/0/resources/limits/deviceclass.resource.kubernetes.io~1mig.nvidia.com", "2")
		}, true},
		"the name of a DeviceClass of network cards": {"claim-uncounted", func(t *testing.T, all []map[string]any) {
			field(t, all[0], worker+"/containers/0/resources/claims", []any{})
			field(t, all[0], worker+"/containers/0/resources/limits/deviceclass.resource.kubernetes.io~1rdma.example.com", "2")
		}, false},
		"nobody scales it": {"replicas-two-writers", set(0, "/spec/enableInTreeAutoscaling", false), false},
		"Flux with Update": {"replicas-two-writers", func(t *testing.T, all []map[string]any) {
			field(t, all[0], "/metadata/managedFields/0/manager", "kustomize-controller")
			field(t, all[0], "/metadata/managedFields/0/operation", "Update")
		}, true},
		"Heliostat itself":                                {"replicas-two-writers", set(0, "/metadata/managedFields/0/manager", "heliostat"), false},
		"the value none hides GPUs":                       {"gpus-visible", set(0, worker+"/containers/0/env", []any{map[string]any{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}}), false},
		"the node has a taint":                            {"gpus-visible", set(1, "/spec/taints", []any{map[string]any{"key": "nvidia.com/gpu", "effect": "NoSchedule"}}), false},
		"the sidecar is Heliostat's":                      {"sidecar-beside-us", set(1, "/spec/containers/1/image", "registry.example/heliostat:v1"), false},
		"the manifest alone":                              {"sidecar-beside-us", withoutHead("/spec/autoscalerOptions/idleTimeoutSeconds", 60), true},
		"the manifest alone, without in-tree autoscaling": {"sidecar-beside-us", withoutHead("/spec/enableInTreeAutoscaling", false), false},
		"the manifest alone, in shadow": {"sidecar-beside-us",
			withoutHead("/metadata/annotations", map[string]any{"heliostat.dev/mode": "shadow"}), false},
		"the manifest alone, with Heliostat's image": {"sidecar-beside-us",
			withoutHead("/spec/autoscalerOptions/image", "registry.example/heliostat:v1"), false},
		"the manifest alone, with a name like Heliostat's image": {"sidecar-beside-us",
			withoutHead("/spec/autoscalerOptions/image", "registry.example/heliostat-ray:v1"), true},
		"the manifest alone, with Heliostat's variable": {"sidecar-beside-us",
			withoutHead("/spec/autoscalerOptions/env", []any{map[string]any{"name": "HELIOSTAT_SIDECAR", "value": "1"}}), false},
		"the manifest alone, with a command that sleeps": {"sidecar-beside-us",
			withoutHead("/spec/autoscalerOptions", map[string]any{"command": []any{"sleep"}, "args": []any{"infinity"}}), false},
		"the manifest alone, with a command and Ray's arguments": {"sidecar-beside-us",
			withoutHead("/spec/autoscalerOptions", map[string]any{"command": []any{"sleep"}}), true},
		"the manifest alone, with another command": {"sidecar-beside-us",
			withoutHead("/spec/autoscalerOptions", map[string]any{"command": []any{"scale"}, "args": []any{"up"}}), true},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, "testdata/shows/"+c.code+".yaml")
			all = append(all, map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "room for one more object"}})
			c.change(t, all)
			found := codesOf(examine(t, all))
			if got := slices.Contains(found, c.code); got != c.found {
				t.Errorf("found %v, want %s in it: %t", found, c.code, c.found)
			}
		})
	}
}

// A group that fits on no known node is a warning, and an error with proof, as in plans.
func TestWhatIsProvenToFitNowhereIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, all []map[string]any, in *doctor.Input)
		want   raydemand.Severity
	}{
		"a node autoscaler may know another pool": {func(*testing.T, []map[string]any, *doctor.Input) {}, raydemand.Warning},
		"all pools are declared":                  {func(_ *testing.T, _ []map[string]any, in *doctor.Input) { in.Pools.Complete = true }, raydemand.Error},
		"the group names a node": {func(t *testing.T, all []map[string]any, _ *doctor.Input) {
			field(t, all[0], worker+"/nodeSelector", map[string]any{"kubernetes.io/hostname": "nobody"})
		}, raydemand.Error},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, "testdata/shows/group-no-node.yaml")
			var pools doctor.Input
			c.change(t, all, &pools)
			in := input(t, all)
			in.Pools = pools.Pools
			findings := doctor.Examine(in)
			at := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Code == "group-no-node" })
			if at < 0 || findings[at].Severity != c.want {
				t.Errorf("got %+v, want group-no-node with severity %s", findings, c.want)
			}
		})
	}
}

// withoutHead removes the head pod, as in a manifest, and sets a field of the RayCluster.
func withoutHead(pointer string, to any) func(t *testing.T, all []map[string]any) {
	return func(t *testing.T, all []map[string]any) {
		all[1] = map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "in the place of the head pod"}}
		field(t, all[0], pointer, to)
	}
}

// spreadMemory requests memory of two of ACK's cards and declares a number of GPUs.
func spreadMemory(gpus string) func(t *testing.T, all []map[string]any) {
	return func(t *testing.T, all []map[string]any) {
		copy(all, objects(t, "testdata/shows/gpu-mem-above-card.yaml"))
		field(t, all[0], "/spec/workerGroupSpecs/0/template/metadata", map[string]any{"labels": map[string]any{"aliyun.com/gpu-count": "2"}})
		field(t, all[0], "/spec/workerGroupSpecs/0/rayStartParams/num-gpus", gpus)
		field(t, all[0], worker+"/containers/0/resources/limits/aliyun.com~1gpu-mem", "20")
	}
}

func TestVariablesFromOtherObjectsAreReportedByHowCertainTheyAre(t *testing.T) {
	all := objects(t, "testdata/shows/environment-unknown.yaml")
	container := worker + "/containers/0"
	field(t, all[0], container+"/env", nil)
	field(t, all[0], container+"/envFrom", []any{map[string]any{"configMapRef": map[string]any{"name": "resources"}}})
	var got []string
	for _, f := range examine(t, all) {
		if f.Code == "environment-unknown" {
			got = append(got, string(f.Severity)+" "+f.Field)
		}
	}
	want := []string{"info spec.workerGroupSpecs[0].template.spec.containers[0].envFrom"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An annotation that nothing reads is removed, and the finding says which there are, or who writes it elsewhere.
