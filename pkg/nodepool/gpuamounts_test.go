package nodepool_test

import (
	"math"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// Who counts cards elsewhere is trusted as little.
func TestPodsOverCardsAreCountedWithoutAListOfThem(t *testing.T) {
	cards := int64(math.MaxInt64)
	n := node("n", announces("aliyun.com/gpu-mem", 60))
	n.GPUs = &nodegpu.GPUs{Kind: gpuinfo.GPUMemory, Cards: &cards, UnitsPerCard: map[string]int64{"aliyun.com/gpu-mem": 15}}
	shape := asks("aliyun.com/gpu-mem", 4)
	if got := shape.PodsOn(&n); got != 15 {
		t.Errorf("%d pods, want 15", got)
	}
}

// A label is written by anybody, and a list as long as it says would be all of the memory there is.
func TestALabelThatCountsMoreCardsThanAnyMachineHasIsUnreadable(t *testing.T) {
	for _, label := range []string{"aliyun.accelerator/nvidia_count", "nvidia.com/gpu.count", "karpenter.k8s.aws/instance-gpu-count"} {
		for _, count := range []string{"17", "2000000000", "100000000000000000"} {
			n := gpuNode("n", quantities("aliyun.com/gpu-mem", 60), label+"="+count)
			gpus := nodegpu.Reader{}.Read(nodegpu.NodeObject{Labels: n.Labels, Allocatable: quantities("aliyun.com/gpu-mem", 60)})
			if len(gpus.Problems) != 1 || gpus.Problems[0].Code != nodegpu.LabelUnreadable || !strings.Contains(gpus.Problems[0].Message, label+"="+count) {
				t.Errorf("%s=%s: problems %v", label, count, gpus.Problems)
			}
			if gpus.Cards != nil {
				t.Errorf("%s=%s: %d cards, want none known", label, count, *gpus.Cards)
			}
			shape := asks("aliyun.com/gpu-mem", 4)
			if got := shape.PodsOn(&n); got != 15 {
				t.Errorf("%s=%s: %d pods, want 15", label, count, got)
			}
		}
	}
}
