package sharing_test

import (
	"slices"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

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
		{"ACK's memory of a card", "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_mem=lots", quantities("aliyun.com/gpu-mem", 60), sharing.LabelUnreadable, "aliyun.accelerator/nvidia_mem=lots"},
		{"more cores than the cards have", "ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4", quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 407),
			sharing.TooManyUnits, "aliyun.com/gpu-core.percentage 407 on 4 cards: want 400"},
		{"memory that cards do not share evenly", "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=4", quantities("aliyun.com/gpu-mem", 61), sharing.TooManyUnits,
			"aliyun.com/gpu-mem 61 on 4 cards: want a multiple of 4"},
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

func TestANodeWhoseSharingNobodyKnowsIsOfNoKind(t *testing.T) {
	for name, more := range map[string]string{
		"a strategy of sharing": "nvidia.com/gpu.sharing-strategy=fractional nvidia.com/gpu.replicas=4",
		"a strategy of MIG":     "nvidia.com/mig.strategy=quantum",
		"replicas":              "nvidia.com/gpu.replicas=many",
	} {
		read := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB " + more), Allocatable: quantities("nvidia.com/gpu", 8)})
		if read.Kind != "unknown" || read.Isolation != "unknown" || len(read.MemoryMiB) > 0 {
			t.Errorf("%s: %s, isolation %s, memory %v", name, read.Kind, read.Isolation, read.MemoryMiB)
		}
	}
}
