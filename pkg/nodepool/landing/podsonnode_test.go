package landing_test

import (
	"math"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// A wrong count of cards must not result in a list of that length, whatever its source.
func TestPodsOverCardsAreCountedWithoutAListOfThem(t *testing.T) {
	cards := int64(math.MaxInt64)
	n := node("n", announces("aliyun.com/gpu-mem", 60))
	n.GPUs = &sharing.GPUs{Kind: gpuinfo.GPUMemory, Cards: &cards, UnitsPerCard: map[string]int64{"aliyun.com/gpu-mem": 15}}
	shape := asks("aliyun.com/gpu-mem", 4)
	if got := landing.PodsOn(&shape, &n); got != 15 {
		t.Errorf("%d pods, want 15", got)
	}
}

// Anyone can write a label, and a list as long as the label's count could use all memory.
func TestALabelThatCountsMoreCardsThanAnyMachineHasIsUnreadable(t *testing.T) {
	for _, label := range []string{"aliyun.accelerator/nvidia_count", "nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count"} {
		for _, count := range []string{"17", "2000000000", "100000000000000000"} {
			n := gpuNode("n", quantities("aliyun.com/gpu-mem", 60), label+"="+count)
			gpus := sharing.Reader{}.Read(sharing.NodeObject{Labels: n.Labels, Allocatable: quantities("aliyun.com/gpu-mem", 60)})
			if len(gpus.Problems) != 1 || gpus.Problems[0].Code != sharing.LabelUnreadable || !strings.Contains(gpus.Problems[0].Message, label+"="+count) {
				t.Errorf("%s=%s: problems %v", label, count, gpus.Problems)
			}
			if gpus.Cards != nil {
				t.Errorf("%s=%s: %d cards, want none known", label, count, *gpus.Cards)
			}
			shape := asks("aliyun.com/gpu-mem", 4)
			if got := landing.PodsOn(&shape, &n); got != 15 {
				t.Errorf("%s=%s: %d pods, want 15", label, count, got)
			}
		}
	}
}

func TestANodeHoldsAsManyPodsAsItsCardsDo(t *testing.T) {
	ack := func(units ...any) landing.Node {
		return gpuNode("n", quantities(units...), "ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4")
	}
	mem := func(pairs ...any) landing.PodShape { return asking(quantities(pairs...)) }
	spread := mem("aliyun.com/gpu-mem", 20)
	spread.CardsAsked = 2
	tests := []struct {
		name  string
		shape landing.PodShape
		node  landing.Node
		want  int64
	}{
		{"one of 15 GiB for each pod of 8, and the sum of 60 would do for seven", mem("aliyun.com/gpu-mem", 8), ack("aliyun.com/gpu-mem", 60), 4},
		{"three on each card", mem("aliyun.com/gpu-mem", 5), ack("aliyun.com/gpu-mem", 60), 12},
		{"cores are of a card too", mem("aliyun.com/gpu-mem", 5, "aliyun.com/gpu-core.percentage", 60), ack("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400), 4},
		{"a pod on two cards", spread, ack("aliyun.com/gpu-mem", 60), 2},
		{"whole cards", mem("nvidia.com/gpu", 3), gpuNode("n", quantities("nvidia.com/gpu", 8), ""), 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := landing.PodsOn(&test.shape, &test.node); got != test.want {
				t.Errorf("%d pods, want %d", got, test.want)
			}
		})
	}
}
