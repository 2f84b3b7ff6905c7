package landing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func affine(terms ...landing.NodeTerm) landing.PodShape { return landing.PodShape{Affinity: terms} }

func expression(key, operator string, values ...string) landing.NodeTerm {
	return landing.NodeTerm{Labels: []landing.Requirement{{Key: key, Operator: operator, Values: values}}}
}

func TestLandTellsWhichNodesCouldHoldAPodOrTheNearestMiss(t *testing.T) {
	gpuTaint := taintedBy("nvidia.com/gpu", "present", sharing.NoSchedule)
	tests := []struct {
		name  string
		shape landing.PodShape
		nodes []landing.Node
		want  landing.Answer
	}{
		{name: "without nodes nothing lands", shape: asks("cpu", 1), want: landing.Answer{Why: "there is no node"}},
		{
			name: "every node that is large enough counts, whatever runs on it", shape: asks("cpu", 8),
			nodes: []landing.Node{node("a"), node("b"), node("c", announces("cpu", 7))}, want: landing.Answer{Nodes: 2},
		},
		{
			name: "a node that announces other GPUs of the vendor is named", shape: asks("nvidia.com/gpu", 1),
			nodes: []landing.Node{node("cpu"), node("l4", hasGPUs(sharing.GPUs{Units: map[string]int64{"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 10}}))},
			want:  landing.Answer{Why: "needs nvidia.com/gpu 1, no node announces it; node l4 announces nvidia.com/gpu.shared 10 instead"},
		},
		{
			name: "so is one whose GPUs nothing announces, if the pod could run there", shape: asks("nvidia.com/gpu", 1),
			nodes: []landing.Node{
				node("tainted", hasGPUs(unsupplied), taintedBy("team", "b", sharing.NoSchedule)), node("l4", hasGPUs(unsupplied)),
			},
			want: landing.Answer{Why: "needs nvidia.com/gpu 1, no node announces it; node l4 shows GPUs (karpenter.k8s.aws/instance-gpu-count=1), and no device plugin announces them"},
		},
		{
			name: "a claim is named by its template", shape: asks("resourceclaimtemplates.resource.k8s.io/ml.t", 1),
			nodes: []landing.Node{node("a", announces("nvidia.com/gpu", 8))},
			want:  landing.Answer{Why: "no node has devices for a claim of ResourceClaimTemplate ml/t"},
		},
		{
			name: "so is the class that it requests and that does not exist",
			shape: landing.PodShape{Requests: landing.Quantities{"resourceclaimtemplates.resource.k8s.io/ml.t": raydemand.One},
				AbsentClasses: map[string]string{"resourceclaimtemplates.resource.k8s.io/ml.t": "mig.example.com"}},
			nodes: []landing.Node{node("a", announces("nvidia.com/gpu", 8))},
			want:  landing.Answer{Why: "no node has devices for a claim of ResourceClaimTemplate ml/t: DeviceClass mig.example.com, which it requests, does not exist"},
		},
		{
			name: "an extended resource is matched by its exact name", shape: asks("nvidia.com/mig-1g.10gb", 1),
			nodes: []landing.Node{node("a", announces("nvidia.com/gpu", 8)), node("b", announces("nvidia.com/mig-1g.5gb", 7))},
			want:  landing.Answer{Why: "needs nvidia.com/mig-1g.10gb 1, no node announces it"},
		},
		{
			name: "a node of the right kind that is too small is nearer than one of another kind", shape: asks("nvidia.com/gpu", 8),
			nodes: []landing.Node{node("a"), node("gpu-0", announces("nvidia.com/gpu", 4))},
			want:  landing.Answer{Why: "the nearest of 2 nodes: node gpu-0 has nvidia.com/gpu 4 where 8 is needed"},
		},
		{
			name: "memory is told for people", shape: asks("memory", 64*gib), nodes: []landing.Node{node("a")},
			want: landing.Answer{Why: "node a has memory 32.0 GiB where 64.0 GiB is needed"},
		},
		{
			name: "a difference that rounding hides is told in bytes", shape: asks("memory", 32*gib+1), nodes: []landing.Node{node("a")},
			want: landing.Answer{Why: "node a has memory 34359738368 where 34359738369 is needed"},
		},
		{
			name: "what HAMi checks by itself needs no node that announces it", shape: asks("nvidia.com/gpumem", 3000),
			nodes: []landing.Node{node("a")}, want: landing.Answer{Nodes: 1},
		},
		{
			name: "a node that is not ready holds nothing", shape: asks("cpu", 1), nodes: []landing.Node{node("a", isNotReady)},
			want: landing.Answer{Why: "node a is not ready"},
		},
		{
			name: "a cordoned node holds nothing", shape: asks("cpu", 1), nodes: []landing.Node{node("a", isCordoned)},
			want: landing.Answer{Why: "node a is cordoned"},
		},
		{
			name:  "a cordon can be tolerated",
			shape: tolerating(asks("cpu", 1), landing.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"}),
			nodes: []landing.Node{node("a", isCordoned)}, want: landing.Answer{Nodes: 1},
		},
		{
			name: "a taint keeps the group away", shape: asks("nvidia.com/gpu", 1),
			nodes: []landing.Node{node("gpu-0", announces("nvidia.com/gpu", 1), taintedBy("nvidia.com/gpu", "", sharing.NoSchedule))},
			want:  landing.Answer{Why: "node gpu-0 has taint nvidia.com/gpu:NoSchedule which the group does not tolerate"},
		},
		{
			name: "all that one node lacks is told", shape: asks("nvidia.com/gpu", 2),
			nodes: []landing.Node{node("gpu-0", announces("nvidia.com/gpu", 1), gpuTaint, isCordoned)},
			want: landing.Answer{Why: "node gpu-0 is cordoned and has taint nvidia.com/gpu=present:NoSchedule which the group does not tolerate" +
				" and has nvidia.com/gpu 1 where 2 is needed"},
		},
		{
			name: "on GKE the toleration comes with the request", shape: asks("nvidia.com/gpu", 1),
			nodes: []landing.Node{node("a", announces("nvidia.com/gpu", 1), gpuTaint, labelled("cloud.google.com/gke-nodepool", "p"))},
			want:  landing.Answer{Nodes: 1},
		},
		{
			name: "on GKE the toleration comes with the request for TPUs", shape: asks("google.com/tpu", 4),
			nodes: []landing.Node{node("a", announces("google.com/tpu", 4), taintedBy("google.com/tpu", "present", sharing.NoSchedule), labelled("cloud.google.com/gke-nodepool", "p"))},
			want:  landing.Answer{Nodes: 1},
		},
		{
			name: "on GKE no toleration comes for what is not requested, nor for another effect", shape: asks("google.com/tpu", 4),
			nodes: []landing.Node{node("a", announces("google.com/tpu", 4), taintedBy("google.com/tpu", "present", sharing.NoExecute), labelled("cloud.google.com/gke-nodepool", "p"))},
			want:  landing.Answer{Why: "node a has taint google.com/tpu=present:NoExecute which the group does not tolerate"},
		},
		{
			name: "elsewhere no toleration comes with the request for TPUs", shape: asks("google.com/tpu", 4),
			nodes: []landing.Node{node("a", announces("google.com/tpu", 4), taintedBy("google.com/tpu", "present", sharing.NoSchedule))},
			want:  landing.Answer{Why: "node a has taint google.com/tpu=present:NoSchedule which the group does not tolerate"},
		},
		{
			name: "on GKE a pod without GPU gets no toleration", shape: asks("cpu", 1),
			nodes: []landing.Node{node("a", gpuTaint, labelled("cloud.google.com/gke-nodepool", "p"))},
			want:  landing.Answer{Why: "node a has taint nvidia.com/gpu=present:NoSchedule which the group does not tolerate"},
		},
		{
			name: "nodeSelector wants the value", shape: landing.PodShape{Selector: map[string]string{"pool": "gpu"}},
			nodes: []landing.Node{node("a", labelled("pool", "cpu"))},
			want:  landing.Answer{Why: "node a has label pool=cpu where nodeSelector wants gpu"},
		},
		{
			name: "nodeSelector wants the label", shape: landing.PodShape{Selector: map[string]string{"pool": "gpu"}},
			nodes: []landing.Node{node("a")}, want: landing.Answer{Why: "node a lacks label pool=gpu that nodeSelector wants"},
		},
		{
			name: "required affinity keeps the group away", shape: affine(expression("zone", "In", "a", "b")),
			nodes: []landing.Node{node("a", labelled("zone", "c"))}, want: landing.Answer{Why: "node a does not match the required node affinity"},
		},
		{
			name: "a pod bound to a node meets neither cordon nor NoSchedule", shape: landing.PodShape{NodeName: "a"},
			nodes: []landing.Node{node("a", isCordoned, gpuTaint), node("b")}, want: landing.Answer{Nodes: 1},
		},
		{
			name: "a pod bound to a node that is not there lands nowhere", shape: landing.PodShape{NodeName: "z"},
			nodes: []landing.Node{node("a")}, want: landing.Answer{Why: "is bound to node z, which is not there"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.shape.Fit(test.nodes)); diff != "" {
				t.Errorf("landing (-want +got):\n%s", diff)
			}
		})
	}
}

// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
func TestTolerationsAreReadAsKubernetesReadsThem(t *testing.T) {
	tests := []struct {
		name       string
		toleration landing.Toleration
		want       bool
	}{
		{"equal key, value and effect", landing.Toleration{Key: "team", Operator: "Equal", Value: "ml", Effect: sharing.NoExecute}, true},
		{"Equal is the default", landing.Toleration{Key: "team", Value: "ml"}, true},
		{"no effect means every effect", landing.Toleration{Key: "team", Operator: "Exists"}, true},
		{"no key with Exists means every taint", landing.Toleration{Operator: "Exists"}, true},
		{"no key with Exists and another effect", landing.Toleration{Operator: "Exists", Effect: sharing.NoSchedule}, false},
		{"another value", landing.Toleration{Key: "team", Value: "web"}, false},
		{"another key", landing.Toleration{Key: "tean", Operator: "Exists"}, false},
		{"another effect", landing.Toleration{Key: "team", Value: "ml", Effect: sharing.NoSchedule}, false},
		{"no key with Equal", landing.Toleration{Value: "ml"}, false},
		{"an unknown operator", landing.Toleration{Key: "team", Operator: "Like", Value: "ml"}, false},
		{"a number above the value", landing.Toleration{Key: "sla", Operator: "Gt", Value: "900"}, true},
		{"a number not above the value", landing.Toleration{Key: "sla", Operator: "Gt", Value: "950"}, false},
		{"a number below the value", landing.Toleration{Key: "sla", Operator: "Lt", Value: "1000"}, true},
		{"a value that is no number", landing.Toleration{Key: "team", Operator: "Gt", Value: "1"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shape := tolerating(asks("cpu", 1), test.toleration)
			taint := taintedBy("team", "ml", sharing.NoExecute)
			if test.toleration.Key == "sla" {
				taint = taintedBy("sla", "950", sharing.NoSchedule)
			}
			if got := shape.Fit([]landing.Node{node("a", taint)}).Nodes == 1; got != test.want {
				t.Errorf("lands: %v, want %v", got, test.want)
			}
		})
	}
}

// https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
func TestRequiredAffinityIsReadAsKubernetesReadsIt(t *testing.T) {
	both := landing.NodeTerm{Labels: []landing.Requirement{{Key: "zone", Operator: "In", Values: []string{"a"}}, {Key: "gpus", Operator: "Exists"}}}
	byName := func(operator string, name string) landing.NodeTerm {
		return landing.NodeTerm{Fields: []landing.Requirement{{Key: "metadata.name", Operator: operator, Values: []string{name}}}}
	}
	tests := []struct {
		name  string
		terms []landing.NodeTerm
		want  bool
	}{
		{"In with the value", []landing.NodeTerm{expression("zone", "In", "b", "a")}, true},
		{"In with another value", []landing.NodeTerm{expression("zone", "In", "b")}, false},
		{"In without the label", []landing.NodeTerm{expression("rack", "In", "")}, false},
		{"NotIn with the value", []landing.NodeTerm{expression("zone", "NotIn", "a")}, false},
		{"NotIn without the label", []landing.NodeTerm{expression("rack", "NotIn", "a")}, true},
		{"Exists", []landing.NodeTerm{expression("zone", "Exists")}, true},
		{"Exists without the label", []landing.NodeTerm{expression("rack", "Exists")}, false},
		{"DoesNotExist", []landing.NodeTerm{expression("rack", "DoesNotExist")}, true},
		{"DoesNotExist with the label", []landing.NodeTerm{expression("zone", "DoesNotExist")}, false},
		{"Gt a smaller number", []landing.NodeTerm{expression("gpus", "Gt", "7")}, true},
		{"Gt compares numbers, not texts", []landing.NodeTerm{expression("gpus", "Gt", "10")}, false},
		{"Gt the same number", []landing.NodeTerm{expression("gpus", "Gt", "8")}, false},
		{"Lt a larger number", []landing.NodeTerm{expression("gpus", "Lt", "10")}, true},
		{"Lt the same number", []landing.NodeTerm{expression("gpus", "Lt", "8")}, false},
		{"Gt a label that is no number", []landing.NodeTerm{expression("zone", "Gt", "1")}, false},
		{"Gt something that is no number", []landing.NodeTerm{expression("gpus", "Gt", "x")}, false},
		{"Gt without a bound", []landing.NodeTerm{expression("gpus", "Gt")}, false},
		{"an unknown operator", []landing.NodeTerm{expression("zone", "Like", "a")}, false},
		{"all requirements of a term", []landing.NodeTerm{both}, true},
		{"one of two terms", []landing.NodeTerm{expression("zone", "In", "b"), both}, true},
		{"an empty term matches nothing", []landing.NodeTerm{{}}, false},
		{"a field: the name", []landing.NodeTerm{byName("In", "gpu-0")}, true},
		{"a field: another name", []landing.NodeTerm{byName("NotIn", "gpu-0")}, false},
	}
	nodes := []landing.Node{node("gpu-0", labelled("zone", "a"), labelled("gpus", "8"))}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shape := affine(test.terms...)
			if got := shape.Fit(nodes).Nodes == 1; got != test.want {
				t.Errorf("lands: %v, want %v", got, test.want)
			}
		})
	}
}

func TestNodesAreEqualOnlyWhenNothingThatMattersDiffers(t *testing.T) {
	plain := node("a", labelled("zone", "a"))
	if !plain.Equal(node("a", labelled("zone", "a"))) {
		t.Error("equal nodes differ")
	}
	for name, other := range map[string]landing.Node{
		"name": node("b", labelled("zone", "a")), "label": node("a", labelled("zone", "b")),
		"readiness": node("a", labelled("zone", "a"), func(n *landing.Node) { n.Ready = false }),
		"cordon":    node("a", labelled("zone", "a"), func(n *landing.Node) { n.Unschedulable = true }),
		"taint":     node("a", labelled("zone", "a"), taintedBy("x", "", sharing.NoSchedule)),
		"resource":  node("a", labelled("zone", "a"), announces("nvidia.com/gpu", 1)),
	} {
		if plain.Equal(other) {
			t.Errorf("a change of %s is not seen", name)
		}
	}
}

func TestNodesDoNotBoundWhatAnExtenderOfTheSchedulerCounts(t *testing.T) {
	npus := []landing.Node{node("n1", announces("huawei.com/Ascend910B4", 32))}
	ask := func(more string, elsewhere map[string]bool) *landing.PodShape {
		return &landing.PodShape{Elsewhere: elsewhere, Requests: landing.Quantities{
			"huawei.com/Ascend910B4": raydemand.One, more: raydemand.Whole(8192),
		}}
	}
	for name, want := range map[string]struct {
		shape *landing.PodShape
		why   string
	}{
		"HAMi counts an Ascend card's memory": {shape: ask("huawei.com/Ascend910B4-memory", nil)},
		"HAMi counts an Ascend card's cores":  {shape: ask("huawei.com/Ascend910B4-core", nil)},
		"the configuration names the resource": {
			shape: ask("acme.com/memory", map[string]bool{"acme.com/memory": true}),
		},
		"a device plugin would announce the resource": {
			shape: ask("acme.com/memory", nil), why: "needs acme.com/memory 8192, no node announces it",
		},
	} {
		if fit := want.shape.Fit(npus); fit.Why != want.why || fit.None() != (want.why != "") {
			t.Errorf("%s: %+v, want the reason %q", name, fit, want.why)
		}
		if n := landing.PodsOn(want.shape, &npus[0]); want.why == "" && n != 32 {
			t.Errorf("%s: %d pods, want 32 by the cards", name, n)
		}
	}
}

func TestWhatCannotBeAskedForIsToldWithWhatWouldBeRight(t *testing.T) {
	const memory, cores = "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"
	part := func(resource string, amount raydemand.Amount) landing.PodShape {
		return landing.PodShape{Requests: landing.Quantities{resource: amount}}
	}
	selecting := func(shape landing.PodShape, marks string) landing.PodShape {
		shape.Selector = labels(marks)
		return shape
	}
	tests := []struct {
		name  string
		shape landing.PodShape
		// want is the code, the field, the value, and a part of the fix.
		want []string
	}{
		{"a whole GPU", asking(quantities("nvidia.com/gpu", 1, "cpu", 1)), nil},
		{"half a GPU", part("nvidia.com/gpu", raydemand.One/2), []string{landing.GPURequestInvalid, "nvidia.com/gpu", "0.5", "whole number"}},
		{"more than any node has", part("nvidia.com/gpu", raydemand.Whole(10_000_000_000)), []string{landing.GPUAmountImpossible, "nvidia.com/gpu", "10000000000", "at most 1048576"}},
		{"memory in bytes", asking(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 3*gib)), []string{landing.GPUAmountImpossible, "nvidia.com/gpumem", "3221225472", "that is 3072"}},
		{"memory in bytes for ACK", asking(quantities(memory, 8*gib)), []string{landing.GPUAmountImpossible, memory, "8589934592", "that is 8"}},
		{"memory in bytes for Koordinator, which counts them", asking(quantities("koordinator.sh/gpu-memory", 8*gib)), nil},
		{"less than none", part("nvidia.com/gpu", -raydemand.One), []string{landing.GPURequestInvalid, "nvidia.com/gpu", "-1", "whole number"}},
		{"half a CPU", part("cpu", raydemand.One/2), nil},
		{"seven percent of cores", asking(quantities(memory, 4, cores, 7)), []string{landing.GPURequestInvalid, cores, "7", "ask for 5 to 100"}},
		{"a hundred", asking(quantities(memory, 4, cores, 100)), nil},
		{"cores without memory", asking(quantities(cores, 20)), []string{landing.GPURequestInvalid, cores, "20", "with aliyun.com/gpu-mem"}},
		{"memory that does not spread", landing.PodShape{Requests: asking(quantities(memory, 9)).Requests, CardsAsked: 2},
			[]string{landing.GPURequestInvalid, memory, "9", "multiple of the number of cards"}},
		{"whole cards of Koordinator", asking(quantities("koordinator.sh/gpu", 200)), nil},
		{"a card and a half of Koordinator", asking(quantities("koordinator.sh/gpu", 150)), []string{landing.GPURequestInvalid, "koordinator.sh/gpu", "150", "whole cards"}},
		{"equal shares of several cards", asking(quantities("koordinator.sh/gpu.shared", 2, "koordinator.sh/gpu-memory-ratio", 150)), nil},
		{"unequal shares of several cards", asking(quantities("koordinator.sh/gpu.shared", 2, "koordinator.sh/gpu-memory-ratio", 75)),
			[]string{landing.GPURequestInvalid, "koordinator.sh/gpu-memory-ratio", "75", "each of 2 cards"}},
		{"a profile that no product has", asking(quantities("nvidia.com/mig-5g.50gb", 1)), []string{landing.MIGProfileUnknown, "nvidia.com/mig-5g.50gb", "1", "nvidia-smi mig -lgip"}},
		{"a profile that the selected product does not have", selecting(asking(quantities("nvidia.com/mig-1g.5gb", 1)), "n/gpu.product=NVIDIA-H100-80GB-HBM3"),
			[]string{landing.MIGProfileUnknown, "nvidia.com/mig-1g.5gb", "1", "1g.10gb"}},
		{"one that it has", selecting(asking(quantities("nvidia.com/mig-1g.10gb", 1)), "n/gpu.product=NVIDIA-H100-80GB-HBM3"), nil},
		{"the spelling of the AKS article", asking(quantities("nvidia.com/mig1g.5gb", 1)), []string{landing.GPUResourceUnknown, "nvidia.com/mig1g.5gb", "1", "correct the name"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range landing.CheckGPUs((sharing.Reader{}), &test.shape) {
				if f.Why == "" || f.Severity == "" {
					t.Errorf("a finding without reason or severity: %+v", f)
				}
				got = append(got, f.Code, f.Field, f.Seen, f.Fix)
			}
			if len(got) == 4 && len(test.want) == 4 && strings.Contains(got[3], test.want[3]) {
				got[3] = test.want[3]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsWithoutGPUsCouldSeeThoseOfTheNode(t *testing.T) {
	gpus := gpuNode("gpu-0", quantities("nvidia.com/gpu", 1), "")
	onGKE := gpuNode("gke-0", quantities("nvidia.com/gpu", 1), "cloud.google.com/gke-accelerator=nvidia-l4")
	tainted := gpuNode("gpu-1", quantities("nvidia.com/gpu", 1), "")
	taintedBy("nvidia.com/gpu", "", sharing.NoSchedule)(&tainted)
	declared := gpuNode("pool", quantities("nvidia.com/gpu", 1), "") // no container runs on such a node yet
	declared.Declared = true
	nodes := []landing.Node{node("cpu-0"), gpus, onGKE, tainted, declared}
	tests := []struct {
		name  string
		shape landing.PodShape
		want  string
	}{
		{"a CPU pod lands where no taint keeps it away", asks("cpu", 1), "gpu-0, 1"},
		{"NVIDIA_VISIBLE_DEVICES=void hides them", landing.PodShape{Requests: asks("cpu", 1).Requests, HidesGPUs: true}, ", 0"},
		{"a pod that asks for GPUs gets its own", asks("nvidia.com/gpu", 1), ", 0"},
		{"and so does one with claims", landing.PodShape{Requests: asks("cpu", 1).Requests, Claims: true}, ", 0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			first, count := landing.SeesGPUs(sharing.Reader{}, &test.shape, nodes)
			if got := fmt.Sprintf("%s, %d", first, count); got != test.want {
				t.Errorf("nodes %q, want %q", got, test.want)
			}
		})
	}
	two := raydemand.Whole(2)
	if f := landing.VisibleFinding("a", 3, &two); f.Fix != "request the GPUs: set the limit nvidia.com/gpu to 2" {
		t.Errorf("with num-gpus 2: %+v", f)
	}
	if f := landing.VisibleFinding("a", 3, nil); f.Seen != "does not hide the GPUs of node a, one of 3 nodes" || f.Code != landing.GPUsVisible {
		t.Errorf("finding %+v", f)
	}
}

func TestAShortageNamesWhatKeepsPodsFromNodes(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	gpus := func(n int64) landing.Quantities {
		return landing.Quantities{gpu: raydemand.Whole(n), "cpu": raydemand.Whole(8)}
	}
	place := func(node string, count, free int64, change ...func(*landing.Place)) landing.Place {
		p := landing.Place{Node: node, Nodes: &count, Free: gpus(free), Accepts: []string{"a"}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	pod := func(change func(*landing.Pod)) landing.Pod {
		p := landing.Pod{Name: "a", Requests: landing.Quantities{gpu: raydemand.Whole(4), "cpu": raydemand.One}}
		change(&p)
		return p
	}
	terabytes := func(n int64) func(*landing.Place) {
		return func(p *landing.Place) { p.Free["memory"] = raydemand.Whole(n << 40) }
	}
	whole := func(n int64) *int64 { return &n }
	tests := []struct {
		name   string
		pod    landing.Pod
		places []landing.Place
		placed int64
		want   landing.Shortage
	}{
		{"all taken", pod(func(*landing.Pod) {}), []landing.Place{place("n", 2, 8)}, 4,
			landing.Shortage{Resource: gpu, Total: raydemand.Whole(16), Need: raydemand.Whole(4)}},
		{"what is left is on several nodes", pod(func(*landing.Pod) {}), []landing.Place{place("n", 2, 6), place("m", 1, 3)}, 2,
			landing.Shortage{Resource: gpu, Left: raydemand.Whole(7), Total: raydemand.Whole(15), Need: raydemand.Whole(4)}},
		{"the CPU", pod(func(p *landing.Pod) { p.Requests["cpu"] = raydemand.Whole(5) }), []landing.Place{place("n", 2, 8)}, 2,
			landing.Shortage{Resource: "cpu", Left: raydemand.Whole(6), Total: raydemand.Whole(16), Need: raydemand.Whole(5)}},
		{"memory beyond the largest amount", pod(func(p *landing.Pod) { p.Requests = landing.Quantities{"memory": raydemand.Whole(3 << 40)} }),
			[]landing.Place{place("n", 300, 8, terabytes(2)), place("m", 300, 8, terabytes(2))}, 0,
			landing.Shortage{Resource: "memory", Left: raydemand.MaxAmount, Total: raydemand.MaxAmount, Need: raydemand.Whole(3 << 40)}},
		{"no card", pod(func(p *landing.Pod) { p.Cards = &landing.CardRequest{Memory: 9} }),
			[]landing.Place{place("n", 1, 8, func(p *landing.Place) { p.Cards = []landing.Card{{Memory: whole(8)}} })}, 0, landing.Shortage{Cards: true}},
		{"one on each node", pod(func(p *landing.Pod) {
			p.Apart = []string{"a"}
		}), []landing.Place{place("n", 2, 8)}, 2, landing.Shortage{Rule: "podAntiAffinity or a port of the node with topologyKey kubernetes.io/hostname"}},
		{"no node accepts it", pod(func(*landing.Pod) {}), []landing.Place{place("n", 2, 8, func(p *landing.Place) { p.Accepts = nil })}, 0, landing.Shortage{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			on := landing.New([]landing.Pod{test.pod}, test.places).All()
			if placed := on.Take(0, 99); placed != test.placed {
				t.Fatalf("%d pods have a place, want %d", placed, test.placed)
			}
			if diff := cmp.Diff(test.want, on.Shortage(0)); diff != "" {
				t.Errorf("shortage (-want +got):\n%s", diff)
			}
		})
	}
}
