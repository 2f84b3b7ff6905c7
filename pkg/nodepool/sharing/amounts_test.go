package sharing_test

import (
	"math"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

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
		if len(gpus.Problems) != 2 || gpus.Problems[0].Code != sharing.AmountUnreadable || !strings.Contains(gpus.Problems[0].Message, "status.allocatable["+name+"]") {
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
