package decode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestRulesThatTheAPIServerRefusesBreakAGroup reads templates that the CRD accepts.
func TestRulesThatTheAPIServerRefusesBreakAGroup(t *testing.T) {
	for name, c := range map[string]struct{ spec, fault string }{
		"no rules":                      {`{}`, ""},
		"a waiting container of a user": {"{}initContainers: [{name: wait-gcs-ready, image: i}]", ""},
		"a sidecar of the name twice":   {"{}initContainers: [{name: ray}]", "name is that of another container"},
		"a name with capitals":          {"{}initContainers: [{name: Tools}]", "lowercase"},
		"a service account":             {"{}serviceAccountName: ray_user", "serviceAccountName is invalid: a lowercase RFC 1123 subdomain"},
		"a variable of envsubst":        {"{}serviceAccountName: $KSA_NAME", "serviceAccountName has a variable that nothing has filled in"},
		"a variable in a selector":      {"{}nodeSelector: {cloud.google.com/gke-accelerator: '${GPU_TYPE}'}", "nodeSelector has a variable that nothing has filled in"},
		"a pull policy":                 {"{}initContainers: [{name: a, imagePullPolicy: always}]", "is none of Always, IfNotPresent, Never"},
		"a protocol":                    {"{}initContainers: [{name: a, ports: [{containerPort: 1, protocol: http}]}]", "is none of TCP"},
		"a variable's name":             {"{}initContainers: [{name: a, env: [{name: A=B}]}]", "printable ASCII"},
		"a toleration of everything":    {"{}tolerations: [{operator: Exists}]", ""},
		"an effect":                     {"{}tolerations: [{key: a, operator: Exists, effect: NoRun}]", "is none of NoSchedule"},
		"a node selector":               {"{}nodeSelector: {a: b c}", "nodeSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			report := &Report{}
			object := objectOf(t, "groupName: g\nmaxReplicas: 2\ntemplate:\n  spec:\n    containers: [{name: ray}]\n    "+strings.TrimPrefix(c.spec, "{}")+"\n")
			group, _ := decodeGroup(sharing.Reader{}, FieldsOf(object, report), 0, false)
			var faults []string
			for _, f := range report.All {
				if f.Code == PodsRefused {
					faults = append(faults, f.Why)
				}
			}
			if group.Broken != (c.fault != "") || (len(faults) == 1) != (c.fault != "") || len(faults) > 0 && !strings.Contains(faults[0], c.fault) {
				t.Errorf("broken: %v, refused %q, want %q; findings %v", group.Broken, faults, c.fault, report.All)
			}
		})
	}
}

func TestAnAmountThatIsNegativeOrOfNoResourceBreaksAGroup(t *testing.T) {
	for amounts, field := range map[string]string{
		`limits: {ephemeral-storage: -4Gi}`:                            "limits.ephemeral-storage",
		`limits: {cpu: 1, memory: 1Gi}, requests: {cpu: -1}`:           "requests.cpu",
		`limits: {cpu: 0, ephemeral-storage: 0}`:                       "",
		`limits: {cpus: 2, memory: 1Gi}`:                               "limits.cpus",
		`requests: {nvidia-gpu: 1}`:                                    "requests.nvidia-gpu",
		`limits: {gpu: 1}`:                                             "limits.gpu",
		`limits: {nvidia.com/gpu/a100: 1}`:                             "nvidia.com/gpu/a100",
		`limits: {NVIDIA.com/gpu: 1}`:                                  "NVIDIA.com/gpu",
		`limits: {hugepages-2Mi: 4Mi}`:                                 "",
		`limits: {hugepages-2Mi: 3Mi}`:                                 "limits.hugepages-2Mi",
		`requests: {hugepages-1Gi: 1Gi}`:                               "limits.hugepages-1Gi",
		`limits: {hugepages-2Mi: 4Mi}, requests: {hugepages-2Mi: 2Mi}`: "limits.hugepages-2Mi",
		`limits: {nvidia.com/gpu: -1}`:                                 "limits.nvidia.com/gpu",
		`limits: {cpu: -2, memory: 1Gi}, requests: {cpu: "1"}`:         "limits.cpu",
		`limits: {cpu: 1}, requests: {cpu: 2}`:                         "requests.cpu",
		`limits: {cpu: 1}, requests: {cpu: 1000m}`:                     "",
	} {
		report := &Report{}
		object := objectOf(t, "groupName: g\nmaxReplicas: 2\ntemplate:\n  spec:\n    containers: [{name: ray, resources: {"+amounts+"}}]\n")
		group, _ := decodeGroup(sharing.Reader{}, FieldsOf(object, report), 0, false)
		found := ""
		for _, f := range report.All {
			if f.Code == PodsRefused {
				found += strings.TrimPrefix(f.Field, "template.spec.containers[0].resources.")
			}
		}
		if !strings.HasSuffix(found, field) || (found == "") != (field == "") || field != "" && !group.Broken {
			t.Errorf("%s: pods-refused at %q, want %q; broken: %v; %v", amounts, found, field, group.Broken, report.All)
		}
	}
}

func TestAmountsOfAFractionOfAByteAreWarningsInEveryContainer(t *testing.T) {
	for spec, want := range map[string]string{
		`containers: [{name: ray, resources: {limits: {cpu: 500m, memory: 512m}}}]`:        "containers[0].resources.limits.memory",
		`containers: [{name: ray, resources: {requests: {ephemeral-storage: "0.1"}}}]`:     "containers[0].resources.requests.ephemeral-storage",
		`initContainers: [{name: wait, resources: {requests: {memory: 1500m}}}]`:           "initContainers[0].resources.requests.memory",
		`containers: [{name: ray, resources: {limits: {cpu: 100m, memory: 1.5Gi}}}]`:       "",
		`containers: [{name: ray, resources: {limits: {memory: 512000m, cpu: "0.0001"}}}]`: "",
	} {
		for _, kind := range []string{"headGroupSpec", "worker"} {
			group := "template: {spec: {" + spec + "}}"
			text := "spec: {headGroupSpec: {" + group + "}}"
			if kind == "worker" {
				text = "spec: {workerGroupSpecs: [{groupName: g, " + group + "}]}"
			}
			cluster := Decode(sharing.Reader{}, &unstructured.Unstructured{Object: objectOf(t, text)})
			found := ""
			for _, f := range cluster.Findings {
				if f.Code == BytesFractional {
					_, found, _ = strings.Cut(f.Field, ".template.spec.")
				}
			}
			if found != want {
				t.Errorf("%s of the %s: %s at %q, want %q", spec, kind, BytesFractional, found, want)
			}
		}
	}
}

func TestNetworkDevicesOfAGPUVendorSetNoGPUOfAWorker(t *testing.T) {
	for name, want := range map[string]bool{
		"nvidia.com/mlnxnics": false, "nvidia.com/resibs2f0": false, "amd.com/vnic": false, "habana.ai/gaudi": false,
		"nvidia.com/gpu.shared": true, "amd.com/cpx_nps4": true, "example.com/half-gpu": true,
	} {
		report := &Report{}
		limits := "{cpu: 1, memory: 1Gi, " + name + ": 1}"
		object := objectOf(t, "groupName: g\nmaxReplicas: 2\ntemplate:\n  spec:\n    containers: [{name: ray, resources: {limits: "+limits+"}}]\n")
		decodeGroup(sharing.Reader{}, FieldsOf(object, report), 0, false)
		if got := len(report.All) > 0; got != want {
			t.Errorf("%s: %v, want a finding: %v", name, report.All, want)
		}
	}
}

// A container without an image is refused. A manifest without any image is an excerpt.
func TestAContainerWithoutAnImageBreaksItsGroup(t *testing.T) {
	for containers, broken := range map[string]bool{
		"{name: ray}": false, "{name: ray, image: a}": false, "{name: ray, image: a}, {name: side}": true,
	} {
		object := objectOf(t, "spec: {workerGroupSpecs: [{groupName: g, template: {spec: {containers: ["+containers+"]}}}]}")
		cluster := joined(&unstructured.Unstructured{Object: object}, nil)
		if got := cluster.Groups[0].Broken; got != broken {
			t.Errorf("%s: broken %v; %v", containers, got, cluster.Findings)
		}
	}
}

// KubeRay adds a container to the head of a RayCluster with in-tree autoscaling (v1.6.2, common/pod.go).
func TestTheHeadHasNoOtherContainerCalledAutoscaler(t *testing.T) {
	for inTree, want := range map[string]int{"true": 1, "false": 0} {
		object := objectOf(t, "spec: {enableInTreeAutoscaling: "+inTree+", headGroupSpec: {template: {spec: {containers: "+
			"[{name: ray, image: a}, {name: autoscaler, image: a}]}}}}")
		cluster, got := joined(&unstructured.Unstructured{Object: object}, nil), 0
		for _, f := range cluster.Findings {
			if f.Code == PodsRefused && strings.Contains(f.Why, "another container") {
				got++
			}
		}
		if got != want {
			t.Errorf("in-tree %s: %v", inTree, cluster.Findings)
		}
	}
}

// underLimits decodes a RayCluster with one group in a namespace with LimitRanges, each of one item.
func underLimits(t *testing.T, podSpec string, items ...string) Decoded {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm, namespace: ml}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: h, image: i}]}}}
  workerGroupSpecs: [{groupName: g, maxReplicas: 4, template: {spec: `+podSpec+`}}]
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	var ranges []*corev1.LimitRange
	for i, item := range items {
		limits := &corev1.LimitRange{}
		limits.Name = fmt.Sprint("l", i+1)
		limits.CreationTimestamp = moment(1)
		changed := moment(5)
		limits.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &changed}}
		if !strings.HasPrefix(item, "type: ") {
			item = "type: Container, " + item
		}
		must(t, yaml.Unmarshal([]byte("limits: [{"+item+"}]"), &limits.Spec))
		ranges = append(ranges, limits)
	}
	d := DecodeObject(object)
	UnderLimitRanges(object, &d, nil, ranges)
	return d
}

// The API server first gives containers the defaults of all LimitRanges, and then checks them (LimitRanger, Admit and
// Validate), init containers too.
func TestAllLimitRangesOfTheNamespaceCount(t *testing.T) {
	const bare = "{containers: [{name: w, image: i}]}"
	for _, c := range []struct {
		pod     string
		items   []string
		cpu     int64
		refused string
	}{
		{bare, []string{"min: {cpu: 100m}, defaultRequest: {cpu: 2}", "defaultRequest: {cpu: 3}"}, 2, ""},
		{bare, []string{"defaultRequest: {cpu: 3}", "min: {cpu: 200m}, defaultRequest: {cpu: 2}"}, 3, ""},
		{bare, []string{"min: {cpu: 2}"}, 2, "spec.workerGroupSpecs[0].template: LimitRange l1 refuses every pod of the group: unless the operator runs with ENABLE_INIT_CONTAINER_INJECTION=false, for cpu in requests of its init container wait-gcs-ready, the LimitRange wants at least 2"},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 1, memory: 256Mi}}}]}", []string{"min: {memory: 256Mi}, max: {memory: 256Mi}"}, 1, ""},
		{bare, []string{"default: {cpu: 3}", "max: {cpu: 2}"}, 3, "containers[0].resources.limits.cpu: LimitRange l2 refuses every pod of the group: at most 2"},
		{bare, []string{"max: {cpu: 2}", "default: {cpu: 3}"}, 2, ""},
		{bare, []string{"default: {cpu: 3}, defaultRequest: {cpu: 1}, maxLimitRequestRatio: {cpu: 2}"}, 1, "containers[0].resources.limits.cpu: LimitRange l1 refuses every pod of the group: a limit of at most 2 times the request, which is 1"},
		{"{containers: [{name: w, image: i, resources: {requests: {cpu: 1}}}], initContainers: [{name: init, image: i, resources: {limits: {cpu: 4}}}]}",
			[]string{"max: {cpu: 3}"}, 4, "initContainers[0].resources.limits.cpu: LimitRange l1 refuses every pod of the group: at most 3"},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 1}}}], initContainers: [{name: init, image: i}]}", []string{"default: {cpu: 2}"}, 2, ""},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 3}}}, {name: s, image: i}]}", []string{"default: {cpu: 2}", "type: Pod, max: {cpu: 4}"}, 5,
			"containers: LimitRange l2 refuses every pod of the group: for cpu in limits of all containers together, it wants at most 4"},
		{"{containers: [{name: w, image: i, resources: {requests: {cpu: 3}}}]}", []string{"type: Pod, max: {cpu: 4}"}, 3, ""}, // wait-gcs-ready has a limit
		{"{containers: [{name: w, image: i, resources: {requests: {cpu: 5}}}]}", []string{"type: Pod, max: {cpu: 4}"}, 5,
			"containers: LimitRange l1 refuses every pod of the group: for cpu in requests of all containers together, it wants at most 4"},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 1}}}]}", []string{"type: Pod, max: {example.com/a: 6}"}, 1,
			"containers: LimitRange l1 refuses every pod of the group: for example.com/a in limits of all containers together, it wants a limit of at most 6"},
		{"{containers: [{name: w, image: i, resources: {requests: {cpu: 3}}}, {name: s, image: i, resources: {limits: {cpu: 1}}}]}", []string{"type: Pod, min: {cpu: 2}"}, 4,
			"containers: LimitRange l1 refuses every pod of the group: for cpu in limits of all containers together, it wants at least 2"},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 1, memory: 128Mi}}}]}", []string{"type: Pod, max: {memory: 200Mi}"}, 1,
			"containers: LimitRange l1 refuses every pod of the group: unless the operator runs with ENABLE_INIT_CONTAINER_INJECTION=false, for memory in limits of all containers together, it wants at most 200Mi"},
		{"{containers: [{name: w, image: i, resources: {limits: {cpu: 3}}}, {name: s, image: i, resources: {limits: {cpu: 1}}}]}", []string{"type: Pod, min: {cpu: 4}, max: {cpu: 4}"}, 4, ""},
	} {
		d := underLimits(t, c.pod, c.items...)
		if got := d.Cluster.Groups[0].Pod.Requests["cpu"]; got != raydemand.Whole(c.cpu) {
			t.Errorf("%s: pods request %v CPUs, want %d", c.items, got, c.cpu)
		}
		said := ""
		for _, f := range d.Findings {
			if f.Code == PodsRefused {
				said += strings.TrimPrefix(f.Field, "spec.workerGroupSpecs[0].template.spec.") + ": " + f.Why
			}
		}
		if said != c.refused {
			t.Errorf("%s: says %q, want %q", c.items, said, c.refused)
		}
	}
}

// A worker that runs proves that its group's pods are admitted, unless it is from before the LimitRange's last change.
func TestOnlyALaterWorkerDisprovesALimitRange(t *testing.T) {
	d := underLimits(t, "{containers: [{name: w, image: i, resources: {limits: {cpu: 4}}}]}", "max: {cpu: 3}")
	running := rayState(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: moment(9)}}, 0)
	for second, closed := range map[int]bool{0: true, 3: true, 5: true, 6: false} {
		worker := pod("w", "worker", "g", running, func(p *corev1.Pod) { p.CreationTimestamp = moment(second) })
		if got := Join(d, kept(worker)).Groups[0].Broken; got != closed {
			t.Errorf("with a worker of second %d: closed %v, want %v", second, got, closed)
		}
	}
}

func TestAGroupWhoseNamePodsCannotHaveIsBroken(t *testing.T) {
	for name, broken := range map[string]bool{"gpu_a100": true, "gpu group": true, "gpu-": true, strings.Repeat("g", 64): true, "Gpu.A100": false, "8": false} {
		report := &Report{}
		object := objectOf(t, fmt.Sprintf("groupName: %q\nmaxReplicas: 2\ntemplate: {spec: {containers: [{name: ray}]}}\n", name))
		group, _ := decodeGroup(sharing.Reader{}, FieldsOf(object, report), 0, false)
		refused := slices.ContainsFunc(report.All, func(f raydemand.Finding) bool {
			return f.Code == PodsRefused && f.Seen == name && f.Field == "groupName"
		})
		if group.Broken != broken || refused != broken {
			t.Errorf("%s: broken %t, pods-refused %t, want %t: %v", name, group.Broken, refused, broken, report.All)
		}
	}
}
