package sharing_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func quantities(pairs ...any) map[string]int64 {
	found := map[string]int64{}
	for i := 0; i < len(pairs); i += 2 {
		found[pairs[i].(string)] = int64(pairs[i+1].(int))
	}
	return found
}

// labels reads "key=value key=value"; nvidia.com/ is written n/.
func labels(text string) map[string]string {
	found := map[string]string{}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		found[strings.Replace(key, "n/", "nvidia.com/", 1)] = value
	}
	return found
}

// summary writes the main results of a reading in one line.
func summary(g sharing.GPUs) string {
	cards := "?"
	if g.Cards != nil {
		cards = string(rune('0' + *g.Cards))
	}
	memory, _ := json.Marshal(g.MemoryMiB)
	var problems []string
	for _, p := range g.Problems {
		problems = append(problems, string(p.Code))
	}
	return strings.TrimSpace(strings.Join([]string{string(g.Kind), string(g.Isolation), cards, string(memory), strings.Join(problems, " ")}, " "))
}

func TestNodesAreReadByTheMarksThatEachWayOfSharingLeaves(t *testing.T) {
	tests := []struct {
		name  string
		units map[string]int64
		marks string
		want  string
	}{
		{"instances that are time-sliced under their own name are shares",
			quantities("nvidia.com/mig-1g.5gb", 28), "n/gpu.product=NVIDIA-A100-SXM4-40GB n/gpu.count=1 n/mig-1g.5gb.replicas=4 n/mig-1g.5gb.memory=4864", "time-sliced none 1 null"},
		{"and under a shared name",
			quantities("nvidia.com/mig-1g.5gb.shared", 28, "nvidia.com/mig-1g.5gb", 0), "n/mig-1g.5gb.memory=4864", "time-sliced none ? null"},
		{"instances beside whole cards",
			quantities("nvidia.com/mig-3g.40gb", 2, "nvidia.com/gpu", 1), "n/gpu.product=NVIDIA-H100-80GB-HBM3 n/gpu.count=2 n/gpu.memory=81559 n/mig-3g.40gb.memory=40320",
			`mig hardware 2 {"nvidia.com/gpu":81559,"nvidia.com/mig-3g.40gb":40320}`},
		{"instances beside cards that are time-sliced isolate no one who asks for nvidia.com/gpu",
			quantities("nvidia.com/mig-3g.40gb", 2, "nvidia.com/gpu", 4), "n/gpu.product=NVIDIA-H100-80GB-HBM3 n/gpu.count=2 n/gpu.replicas=4", "mig none 2 null"},
		{"whole cards that stayed announced after they were cut",
			quantities("nvidia.com/mig-1g.10gb", 14, "nvidia.com/gpu", 2), "n/gpu.product=NVIDIA-A100-80GB-PCIe n/gpu.count=2", "mig unknown 2 null too-many-units"},
		{"a profile of another product",
			quantities("nvidia.com/mig-1g.5gb", 7), "n/gpu.product=NVIDIA-H100-80GB-HBM3 n/gpu.count=1", "unknown unknown 1 null profile-unknown"},
		{"a GKE partition of another product", quantities("nvidia.com/gpu", 7),
			"cloud.google.com/gke-accelerator=nvidia-h100-80gb cloud.google.com/gke-gpu-partition-size=1g.5gb", "unknown unknown ? null profile-unknown"},
		{"a GKE partition that is misspelt", quantities("nvidia.com/gpu", 7),
			"cloud.google.com/gke-accelerator=nvidia-h100-80gb cloud.google.com/gke-gpu-partition-size=1g5gb", "unknown unknown ? null label-unreadable"},
		{"instances of the single strategy of another product", quantities("nvidia.com/gpu", 7),
			"n/gpu.product=NVIDIA-H100-80GB-HBM3-MIG-1g.5gb n/gpu.count=7 n/gpu.memory=4864 n/mig.strategy=single", "unknown unknown ? null profile-unknown"},
		{"a change to a profile of another product", quantities("nvidia.com/gpu", 0),
			"n/gpu.product=NVIDIA-H100-80GB-HBM3 n/gpu.count=1 n/mig.config=all-1g.5gb n/mig.config.state=failed", "unknown unknown ? null mig-changing profile-unknown"},
		{"a profile as an older driver names it", quantities("nvidia.com/mig-7g.79gb", 1), "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.count=1", "mig hardware 1 null"},
		{"single strategy with time-slicing", quantities("nvidia.com/gpu", 28),
			"n/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED n/gpu.count=7 n/gpu.replicas=4 n/gpu.memory=4864 n/mig.strategy=single", "time-sliced none ? null"},
		{"three of seven instances can be on one card or on three", quantities("nvidia.com/gpu", 3),
			"n/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb n/gpu.count=3 n/gpu.replicas=1 n/gpu.memory=4864 n/mig.strategy=single", `mig hardware ? {"nvidia.com/gpu":4864}`},
		{"seven can be too, where nothing says that all cards are cut alike", quantities("nvidia.com/gpu", 7),
			"n/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb n/gpu.count=7 n/gpu.memory=4864", `mig hardware ? {"nvidia.com/gpu":4864}`},
		{"instances that OpenShift's slicer creates on demand, however many there could be",
			quantities("mig.das.com/1g.5gb", 14, "mig.das.com/3g.20gb", 4, "mig.das.com/7g.40gb", 2, "nvidia.com/gpu", 0),
			"n/gpu.product=NVIDIA-A100-SXM4-40GB n/gpu.count=2 n/gpu.replicas=0 n/mig.strategy=mixed n/mig.config=all-enabled n/mig.config.state=success n/gpu.present=true",
			"mig hardware 2 null amounts-alternative"},
		{"MPS divides the memory", quantities("nvidia.com/gpu", 4),
			"n/gpu.product=Tesla-T4-SHARED n/gpu.count=1 n/gpu.replicas=4 n/gpu.sharing-strategy=mps n/gpu.memory=15360", `mps limit 1 {"nvidia.com/gpu":3840}`},
		{"GKE partitions", quantities("nvidia.com/gpu", 7), "cloud.google.com/gke-accelerator=nvidia-tesla-a100 cloud.google.com/gke-gpu-partition-size=1g.5gb", "mig hardware ? null"},
		{"GKE partitions of a machine whose cards are documented", quantities("nvidia.com/gpu", 4), "cloud.google.com/gke-accelerator=nvidia-rtx-pro-6000 cloud.google.com/gke-gpu-partition-size=1g.24gb node.kubernetes.io/instance-type=g4-standard-48", "mig hardware 1 null"},
		{"GKE partitions that are shared", quantities("nvidia.com/gpu", 14),
			"cloud.google.com/gke-gpu-partition-size=1g.5gb cloud.google.com/gke-gpu-sharing-strategy=time-sharing cloud.google.com/gke-max-shared-clients-per-gpu=2", "time-sliced none ? null"},
		{"GKE with MPS", quantities("nvidia.com/gpu", 3),
			"cloud.google.com/gke-gpu-sharing-strategy=mps cloud.google.com/gke-max-shared-clients-per-gpu=3", "mps limit 1 null"},
		{"a sharing that GKE does not know", quantities("nvidia.com/gpu", 3), "cloud.google.com/gke-gpu-sharing-strategy=swapping", "unknown unknown ? null label-unreadable"},
		{"ACK with memory and cores", quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400),
			"ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4 aliyun.accelerator/nvidia_mem=15109MiB", `gpu-mem limit 4 {"aliyun.com/gpu-mem":1024}`},
		{"ACK's share mode with units of 128 MiB", quantities("aliyun.com/gpu-mem", 118),
			"ack.node.gpu.schedule=share aliyun.accelerator/nvidia_count=1 aliyun.accelerator/nvidia_mem=15109MiB", `gpu-mem none 1 {"aliyun.com/gpu-mem":128}`},
		{"ACK's share mode without the card's memory", quantities("aliyun.com/gpu-mem", 118), "ack.node.gpu.schedule=share", "gpu-mem none ? null"},
		{"a mode that ACK does not know", quantities("aliyun.com/gpu-mem", 15), "ack.node.gpu.schedule=exclusive", `gpu-mem unknown ? {"aliyun.com/gpu-mem":1024} label-unreadable`},
		{"gpushare that counts MiB", quantities("aliyun.com/gpu-mem", 44712, "aliyun.com/gpu-count", 4), "gpushare=true", `gpu-mem none 4 {"aliyun.com/gpu-mem":1}`},
		{"more units than cards and no mark", quantities("nvidia.com/gpu", 8), "n/gpu.product=Tesla-T4 n/gpu.count=2 n/gpu.replicas=1", "unknown unknown 2 null sharing-unlabelled"},
		{"a count that is none", quantities("nvidia.com/gpu", 2), "n/gpu.product=Tesla-T4 n/gpu.count=two n/gpu.replicas=1", "whole hardware ? null label-unreadable"},
		{"a resource spelled as in the AKS article", quantities("nvidia.com/mig1g.5gb", 7), "", "unknown unknown ? null resource-not-known"},
		{"feature discovery sees cards, and the plugin announces none", quantities("nvidia.com/gpu", 0), "n/gpu.present=true n/gpu.product=Tesla-T4 n/gpu.count=1 n/gpu.replicas=1",
			"whole hardware 1 null nothing-announced"},
		{"no GPU", quantities("hugepages.example/x", 1), "kubernetes.io/arch=amd64", "unknown unknown ? null"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels(test.marks), Capacity: test.units, Allocatable: test.units})
			if diff := cmp.Diff(test.want, summary(got)); diff != "" {
				t.Errorf("kind, isolation, cards, memory, problems (-want +got):\n%s\n%v", diff, got.Problems)
			}
		})
	}
}

func TestAConfiguredResourceIsReadAsToldAndAnUnknownOneIsAProblem(t *testing.T) {
	node := sharing.NodeObject{Name: "n", Allocatable: quantities("corp.example/half-gpu", 4)}
	unknown := sharing.Reader{}.Read(node)
	if len(unknown.Problems) != 1 || unknown.Problems[0].Code != sharing.ResourceNotKnown || unknown.Units["corp.example/half-gpu"] != 4 || unknown.Kind != gpuinfo.UnknownKind {
		t.Errorf("unknown: %+v", unknown)
	}
	reader := sharing.Reader{Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "corp.example/half-gpu", Kind: gpuinfo.TimeSliced, Role: gpuinfo.Devices}}}}
	if got := summary(reader.Read(node)); got != "time-sliced none ? null" {
		t.Errorf("configured: %s", got)
	}
}

func TestNodesThatAreNotReadySayIt(t *testing.T) {
	for ready, want := range map[string]string{"True": "[]", "False": "[not-ready: Ready is False]", "Unknown": "[not-ready: Ready is Unknown]", "": "[]"} {
		conditions := map[string]string{"Ready": ready}
		if ready == "" {
			delete(conditions, "Ready") // an excerpt of a node has no conditions
		}
		if got := fmt.Sprint(sharing.Reader{}.Read(sharing.NodeObject{Conditions: conditions}).Problems); got != want {
			t.Errorf("Ready %q: %s, want %s", ready, got, want)
		}
	}
}

func TestConditionsAreBadByTheirOwnPolarity(t *testing.T) {
	for status, want := range map[string]int{"True": 1, "False": 1, "Unknown": 0} {
		got := sharing.Reader{}.Read(sharing.NodeObject{Conditions: map[string]string{"AcceleratedHardwareReady": status, "NvidiaXidError": status}})
		if len(got.Problems) != want {
			t.Errorf("%s: %v", status, got.Problems)
		}
	}
	got := sharing.Reader{}.Read(sharing.NodeObject{Conditions: map[string]string{"AcceleratedHardwareReady": "False"}})
	if len(got.Problems) != 1 || got.Problems[0].String() != "condition-bad: AcceleratedHardwareReady is False" {
		t.Errorf("%v", got.Problems)
	}
}

func TestABrokenRegisterOfHAMiIsAProblemAndNoMore(t *testing.T) {
	for _, register := range []string{"[{", "GPU-1,10", "GPU-1,ten,1,1,T4,0,true:", "GPU-1,10,1,1,T4,0,maybe:", ":", "[]"} {
		got := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{"hami.io/node-nvidia-register": register}})
		if s := summary(got); s != "vgpu unknown ? null register-unreadable" {
			t.Errorf("%s: %s, %v", register, s, got.Problems)
		}
	}
	sick := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{"hami.io/node-nvidia-register": "GPU-1,10,15360,100,NVIDIA-Tesla T4,0,false,0,hami-core:"}})
	if s := summary(sick); s != "vgpu limit 1 null device-unhealthy" {
		t.Errorf("%s, %v", s, sick.Problems)
	}
}

func TestAnAmountThatNoNodeCanHaveIsAProblemAndNotAnnounced(t *testing.T) {
	for name, amount := range map[string]int64{
		"nvidia.com/gpu": -1, "aliyun.com/gpu-mem": -8, "nvidia.com/mig-1g.5gb": 10_000_000_000, "volcano.sh/vgpu-memory": -1, "gpu.intel.com/memory.max": math.MaxInt64,
	} {
		gpus := sharing.Reader{}.Read(sharing.NodeObject{
			Name: "n", Labels: labels("n/gpu.product=NVIDIA-A100-SXM4-40GB n/gpu.memory=40960"), Pods: []sharing.Pod{pod(quantities(name, 1))},
			Allocatable: map[string]int64{name: amount}, Capacity: map[string]int64{name: amount},
		})
		if _, announced := gpus.Units[name]; announced || len(gpus.PerCard) > 0 {
			t.Errorf("%s %d: units %v, cards %v", name, amount, gpus.Units, gpus.PerCard)
		}
		if len(gpus.Problems) != 2 || gpus.Problems[0].Code != sharing.AmountUnreadable || !strings.Contains(gpus.Problems[0].Message, "status.allocatable[\""+name+"\"]") {
			t.Errorf("%s %d: problems %v", name, amount, gpus.Problems)
		}
	}
}

// Plugins can rename the resources that they announce, and other vendors partition cards too.
func TestDevicesUnderAnUnknownNameAreNoWholeCards(t *testing.T) {
	marks := labels("n/gpu.product=NVIDIA-A100-SXM4-40GB n/gpu.memory=40960 n/gpu.count=1")
	for _, name := range []string{"nvidia.com/mig-small", "amd.com/gpu_nps4", "tencent.com/vcuda-core"} {
		gpus := sharing.Reader{}.Read(sharing.NodeObject{Labels: marks, Allocatable: quantities(name, 8)})
		if gpus.Kind != gpuinfo.UnknownKind || len(gpus.MemoryMiB) > 0 || len(gpus.Problems) != 1 || gpus.Problems[0].Code != sharing.ResourceNotKnown {
			t.Errorf("%s: kind %s, memory %v, problems %v", name, gpus.Kind, gpus.MemoryMiB, gpus.Problems)
		}
	}
	for _, other := range []string{"amd.com/nic", "amd.com/vnic", "amd.com/xilinx_u250"} {
		if gpus := (sharing.Reader{}).Read(sharing.NodeObject{Allocatable: quantities(other, 8)}); len(gpus.Problems) > 0 {
			t.Errorf("%s: problems %v", other, gpus.Problems)
		}
	}
	reader := sharing.Reader{Names: gpuinfo.Names{Configured: []gpuinfo.Resource{{Name: "nvidia.com/mig-small", Kind: gpuinfo.MIG, Role: gpuinfo.Devices, Profile: "1g.5gb"}}}}
	marks["nvidia.com/mig-1g.5gb.memory"] = "4864"
	gpus := reader.Read(sharing.NodeObject{Labels: marks, Allocatable: quantities("nvidia.com/mig-small", 7)})
	if gpus.Kind != gpuinfo.MIG || gpus.MemoryMiB["nvidia.com/mig-small"] != 4864 || len(gpus.Problems) > 0 {
		t.Errorf("configured: kind %s, memory %v, problems %v", gpus.Kind, gpus.MemoryMiB, gpus.Problems)
	}
}

func TestALayoutThatNoCardCanHaveIsNotTakenFromTheAnnotation(t *testing.T) {
	read := func(instances string) sharing.GPUs {
		report := `{"cards":[{"index":0,"product":"NVIDIA A100-SXM4-40GB","memoryMiB":40960,"healthy":true,"mig":{"enabled":true,"instances":[` + instances + `]}}]}`
		return sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{sharing.AgentAnnotation: report}})
	}
	for _, impossible := range []string{`{"profile":"9g.99gb","start":77}`, `{"profile":"3g.20gb","start":4},{"profile":"7g.40gb","start":0}`} {
		gpus := read(impossible)
		if len(gpus.PerCard) != 1 || len(gpus.PerCard[0].Instances) > 0 || len(gpus.Problems) != 1 || gpus.Problems[0].Code != sharing.LabelUnreadable {
			t.Errorf("%s: cards %s, problems %v", impossible, cardText(gpus.PerCard), gpus.Problems)
		}
	}
	if gpus := read(`{"profile":"3g.20gb","start":4},{"profile":"1g.5gb","start":0}`); len(gpus.PerCard[0].Instances) != 2 || len(gpus.Problems) > 0 {
		t.Errorf("a layout that can be: cards %s, problems %v", cardText(gpus.PerCard), gpus.Problems)
	}
}

// Labels and amounts from other versions, from other programs and with typing errors: what no reader can interpret is
// reported and ignored.
func TestWhatNoLabelOrAmountCanMeanIsToldAndNotTaken(t *testing.T) {
	const a100 = "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB "
	tests := []struct {
		name     string
		labels   string
		units    map[string]int64
		problem  sharing.ProblemCode
		contains string
	}{
		{"a strategy of MIG", a100 + "nvidia.com/mig.strategy=quantum", quantities("nvidia.com/gpu", 8), sharing.LabelUnreadable, "nvidia.com/mig.strategy=quantum: want none, single or mixed"},
		{"a strategy of sharing", a100 + "nvidia.com/gpu.sharing-strategy=fractional nvidia.com/gpu.replicas=4", quantities("nvidia.com/gpu", 8), sharing.LabelUnreadable,
			"nvidia.com/gpu.sharing-strategy=fractional: want none, time-slicing or mps"},
		{"replicas", a100 + "nvidia.com/gpu.replicas=1000000000000", quantities("nvidia.com/gpu", 8), sharing.LabelUnreadable, "nvidia.com/gpu.replicas=1000000000000: want at most"},
		{"memory of a card", a100 + "nvidia.com/gpu.memory=-1", quantities("nvidia.com/gpu", 8), sharing.LabelUnreadable, "nvidia.com/gpu.memory=-1"},
		{"cards", a100 + "nvidia.com/gpu.count=1000000000000000000", quantities("nvidia.com/gpu", 8), sharing.LabelUnreadable, "nvidia.com/gpu.count=1000000000000000000: want at most"},
		{"clients of GKE", "cloud.google.com/gke-accelerator=nvidia-l4 cloud.google.com/gke-gpu-sharing-strategy=mps cloud.google.com/gke-max-shared-clients-per-gpu=1000000000000",
			quantities("nvidia.com/gpu", 8), sharing.LabelUnreadable, "cloud.google.com/gke-max-shared-clients-per-gpu=1000000000000: want at most"},
		{"ACK's placement", "ack.node.gpu.schedule=cgpu ack.node.gpu.placement=sideways aliyun.accelerator/nvidia_count=4", quantities("aliyun.com/gpu-mem", 60), sharing.LabelUnreadable,
			"ack.node.gpu.placement=sideways: want binpack or spread"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels(test.labels), Allocatable: test.units})
			if !slices.ContainsFunc(read.Problems, func(p sharing.Problem) bool {
				return p.Code == test.problem && strings.Contains(p.Message, test.contains)
			}) {
				t.Errorf("kind %s, problems %v, want %s: %s", read.Kind, read.Problems, test.problem, test.contains)
			}
		})
	}
}

// The memory on a label bounds what a node promises, and far less than the product has is a part of a card.
func TestFarLessMemoryThanTheProductHasIsNoWholeCard(t *testing.T) {
	const one, below = " n/gpu.count=1 n/gpu.replicas=1", "unknown unknown ? null memory-below-product"
	for _, test := range []struct{ name, marks, want string }{
		{"half of a card with MIG", "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.memory=40960" + one, below},
		{"half of a card without", "n/gpu.product=NVIDIA-L40S n/gpu.memory=23034" + one, below},
		{"half of a card that names its memory", "n/gpu.product=Tesla-V100-SXM2-32GB n/gpu.memory=16384" + one, below},
		{"by ACK's label", "aliyun.accelerator/nvidia_name=NVIDIA-A100-SXM4-80GB aliyun.accelerator/nvidia_mem=40960MiB aliyun.accelerator/nvidia_count=1", below},
		{"by GKE's product and feature discovery's memory", "cloud.google.com/gke-accelerator=nvidia-a100-80gb n/gpu.memory=40960", below},
		{"what ECC takes is not far less", "n/gpu.product=Tesla-T4 n/gpu.memory=15109" + one, `whole hardware 1 {"nvidia.com/gpu":15109}`},
		{"nor what the driver takes", "n/gpu.product=NVIDIA-H200 n/gpu.memory=143771" + one, `whole hardware 1 {"nvidia.com/gpu":143771}`},
		{"a virtual card says so by its name", "n/gpu.product=NVIDIA-L40S-24Q n/gpu.memory=24576" + one, "unknown unknown ? null"},
		{"memory of instances", "n/gpu.product=NVIDIA-A100-SXM4-80GB-MIG-7g.80gb n/gpu.memory=40960" + one, `mig hardware ? {"nvidia.com/gpu":40960}`},
		{"more than the product has", "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.memory=163840" + one, `whole hardware 1 {"nvidia.com/gpu":81920}`},
		{"a model of several sizes", "n/gpu.product=NVIDIA-GeForce-RTX-3080 n/gpu.memory=10240" + one, `whole hardware 1 {"nvidia.com/gpu":10240}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			units := quantities("nvidia.com/gpu", 1)
			got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels(test.marks), Capacity: units, Allocatable: units})
			if summary(got) != test.want {
				t.Errorf("got  %s\nwant %s\n%v", summary(got), test.want, got.Problems)
			}
		})
	}
}

func TestCardsThatLabelsShowAndNothingOffersAreReported(t *testing.T) {
	const nfd = "feature.node.kubernetes.io/"
	none := quantities("vpc.amazonaws.com/efa", 1)
	tests := []struct {
		name    string
		units   map[string]int64
		marks   string
		want    sharing.ProblemCode
		promise string
	}{
		{"Karpenter on AWS", none, "karpenter.k8s.aws/instance-gpu-count=1 karpenter.k8s.aws/instance-gpu-name=l4", sharing.NothingAnnounced, "karpenter.k8s.aws/instance-gpu-count=1"},
		{"Karpenter counts no GPU", none, "karpenter.k8s.aws/instance-gpu-count=0", "", ""},
		{"EKS Auto Mode", none, "eks.amazonaws.com/instance-gpu-count=4", sharing.NothingAnnounced, "eks.amazonaws.com/instance-gpu-count=4"},
		{"Karpenter on Azure", none, "karpenter.azure.com/sku-gpu-count=1", sharing.NothingAnnounced, "karpenter.azure.com/sku-gpu-count=1"},
		{"AKS", none, "kubernetes.azure.com/accelerator=nvidia", sharing.NothingAnnounced, "kubernetes.azure.com/accelerator=nvidia"},
		{"an instance type", none, "node.kubernetes.io/instance-type=Standard_NC4as_T4_v3", sharing.NothingAnnounced, "node.kubernetes.io/instance-type=Standard_NC4as_T4_v3"},
		{"an instance type without GPUs", none, "node.kubernetes.io/instance-type=m5.large", "", ""},
		{"NFD as the GPU operator configures it", none, nfd + "pci-10de.present=true", sharing.NothingAnnounced, nfd + "pci-10de.present=true"},
		{"NFD with the class", none, nfd + "pci-0302_10de.present=true", sharing.NothingAnnounced, nfd + "pci-0302_10de.present=true"},
		{"NFD finds AMD's", none, nfd + "amd-gpu=true " + nfd + "pci-1002.present=true", sharing.NothingAnnounced, nfd + "amd-gpu=true"},
		{"NFD finds Intel's network card", none, nfd + "pci-8086.present=true " + nfd + "pci-0200_8086.present=true", "", ""},
		{"NFD finds Intel's GPU", none, nfd + "pci-0380_8086.present=true", sharing.NothingAnnounced, nfd + "pci-0380_8086.present=true"},
		{"AMD's labeller, and the plugin has none left", quantities("amd.com/gpu", 0), "amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM", sharing.NothingAnnounced, "amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM"},
		{"network devices of NVIDIA's domain are no GPUs", quantities("nvidia.com/mlnxnics", 8), "n/gpu.present=true", sharing.NothingAnnounced, "nvidia.com/gpu.present=true"},
		{"nor are foreign ones", quantities("nvidia.com/resibs2f0", 8), "n/gpu.present=true", sharing.NothingAnnounced, "nvidia.com/gpu.present=true"},
		{"GKE without its plugin", none, "cloud.google.com/gke-accelerator=nvidia-l4 gke-no-default-nvidia-gpu-device-plugin=true", sharing.NoDevicePlugin, "gke-no-default-nvidia-gpu-device-plugin=true keeps GKE's device plugin away"},
		{"GKE without its plugin, and another one runs", quantities("nvidia.com/gpu", 1), "cloud.google.com/gke-accelerator=nvidia-l4 gke-no-default-nvidia-gpu-device-plugin=true", "", ""},
		{"shares under another name", quantities("nvidia.com/gpu.shared", 10), "karpenter.k8s.aws/instance-gpu-count=1", "", ""},
		{"an excerpt without resources", nil, "karpenter.k8s.aws/instance-gpu-count=1 node.kubernetes.io/instance-type=g6.xlarge", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels(test.marks), Allocatable: test.units})
			label, is := read.Unsupplied()
			reported := test.want == "" || slices.ContainsFunc(read.Problems, func(p sharing.Problem) bool { return p.Code == test.want })
			if is != (test.want != "") || label != test.promise || !reported {
				t.Errorf("got %q of %v, want %s of %q", label, read.Problems, test.want, test.promise)
			}
		})
	}
	offered := sharing.NodeObject{Labels: labels("n/gpu.present=true"), Allocatable: none, Devices: []sharing.DRADevice{{Name: "gpu-0", Type: "gpu"}}}
	if problem, is := (sharing.Reader{}).Read(offered).Unsupplied(); is {
		t.Errorf("a ResourceSlice offers the GPU: %v", problem)
	}
}
