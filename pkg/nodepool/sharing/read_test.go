package sharing_test

import (
	"encoding/json"
	"fmt"
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
