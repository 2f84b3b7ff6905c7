package landing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sliceText formats each slice as units, kind, profile, MiB (~ if nominal), compute, isolation.
func sliceText(answers []landing.Slice) string {
	var lines []string
	for _, s := range answers {
		memory, compute, profile := "?", "?", ""
		if s.MemoryMiB != nil {
			memory = fmt.Sprint(*s.MemoryMiB)
		}
		if s.Nominal {
			memory = "~" + memory
		}
		if s.ComputeFraction != nil {
			compute = fmt.Sprintf("%.3f", *s.ComputeFraction)
		}
		if s.Profile != nil {
			profile = " " + *s.Profile
		}
		lines = append(lines, fmt.Sprintf("%d %s%s %s %s %s", s.UnitsPerPod, s.Kind, profile, memory, compute, s.Isolation))
	}
	return strings.Join(lines, "; ")
}

func TestASliceIsWhatTheNodesMakeOfTheResource(t *testing.T) {
	const (
		t4     = "n/gpu.product=Tesla-T4 n/gpu.count=1 n/gpu.memory=15360 n/gpu.replicas="
		mixed  = "n/gpu.product=NVIDIA-H100-80GB-HBM3 n/gpu.count=2 n/gpu.memory=81559 n/gpu.replicas=1 n/mig-3g.40gb.memory=40448 n/mig.strategy=mixed"
		single = "n/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb n/gpu.count=7 n/gpu.replicas=1 n/gpu.memory=4864 n/mig.strategy=single"
	)
	tests := []struct {
		name  string
		asks  map[string]int64
		units map[string]int64
		marks string
		want  string
	}{
		{"a whole card", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 1), t4 + "1", "1 whole 15360 1.000 hardware"},
		{"time-slicing promises neither memory nor compute", quantities("nvidia.com/gpu", 2), quantities("nvidia.com/gpu", 4), t4 + "4", "2 time-sliced ? ? none"},
		{"an MPS client has its part", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 4), t4 + "4 n/gpu.sharing-strategy=mps", "1 mps 3840 0.250 limit"},
		{"GKE's MPS on a partition", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 14),
			"cloud.google.com/gke-gpu-partition-size=3g.20gb cloud.google.com/gke-gpu-sharing-strategy=mps cloud.google.com/gke-max-shared-clients-per-gpu=2", "1 mps 3g.20gb ? ? limit"},
		{"an instance under the plain name", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 7), single, "1 mig 1g.5gb 4864 0.143 hardware"},
		{"an instance under its own name has the memory of the node's label", quantities("nvidia.com/mig-3g.40gb", 1), quantities("nvidia.com/mig-3g.40gb", 2), mixed, "1 mig 3g.40gb 40448 0.429 hardware"},
		{"without a label that of the product's table", quantities("nvidia.com/mig-1g.10gb", 1), quantities("nvidia.com/mig-1g.10gb", 7), mixed, "1 mig 1g.10gb 9984 0.143 hardware"},
		{"without a product the round one of the name", quantities("nvidia.com/mig-1g.10gb", 1), quantities("nvidia.com/mig-1g.10gb", 7), "", "1 mig 1g.10gb ~10240 0.143 hardware"},
		{"beside instances the plain name is a card", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 1, "nvidia.com/mig-3g.40gb", 2), mixed, "1 whole 81559 1.000 hardware"},
		{"an instance that is shared isolates nothing", quantities("nvidia.com/mig-1g.5gb.shared", 1), quantities("nvidia.com/mig-1g.5gb.shared", 14), "", "1 time-sliced 1g.5gb ? ? none"},
		{"gpu-mem with cores", quantities("aliyun.com/gpu-mem", 4, "aliyun.com/gpu-core.percentage", 20), quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400),
			"ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4", "4 gpu-mem 1024 0.050 limit"},
		{"HAMi", quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 3000, "nvidia.com/gpucores", 30), quantities("nvidia.com/gpu", 10), "gpu=on aliyun.accelerator/nvidia_count=1", "1 vgpu 3000 0.300 limit"},
		{"HAMi, all of the memory", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 10), "gpu=on aliyun.accelerator/nvidia_count=1 karpenter.k8s.aws/instance-gpu-memory=22888", "1 vgpu 22888 ? limit"},
		{"Volcano", quantities("volcano.sh/vgpu-number", 2, "volcano.sh/vgpu-memory", 2000), quantities("volcano.sh/vgpu-number", 10, "volcano.sh/vgpu-memory", 8192, "volcano.sh/vgpu-cores", 100), "", "2 vgpu 2000 ? limit"},
		{"Volcano, in units of 10 MiB", quantities("volcano.sh/vgpu-number", 1, "volcano.sh/vgpu-memory", 2500), quantities("volcano.sh/vgpu-number", 10, "volcano.sh/vgpu-memory", 8192, "volcano.sh/vgpu-cores", 100),
			"nvidia.com/gpu.memory=81920", "1 vgpu 25000 ? limit"},
		{"Volcano, in units that nothing explains", quantities("volcano.sh/vgpu-number", 1, "volcano.sh/vgpu-memory", 2500), quantities("volcano.sh/vgpu-number", 10, "volcano.sh/vgpu-memory", 50000, "volcano.sh/vgpu-cores", 100),
			"nvidia.com/gpu.memory=81920", "1 vgpu ? ? limit"},
		{"Koordinator gives each of two shares its part", quantities("koordinator.sh/gpu.shared", 2, "koordinator.sh/gpu-memory-ratio", 100, "koordinator.sh/gpu-core", 60),
			quantities("koordinator.sh/gpu.shared", 200, "koordinator.sh/gpu-memory-ratio", 200, "koordinator.sh/gpu-core", 200), "karpenter.k8s.aws/instance-gpu-count=2 karpenter.k8s.aws/instance-gpu-memory=40960", "2 vgpu 20480 0.300 limit"},
		{"also of memory in bytes", quantities("koordinator.sh/gpu.shared", 2, "koordinator.sh/gpu-memory", 16<<30),
			quantities("koordinator.sh/gpu.shared", 200, "koordinator.sh/gpu-memory", 80<<30), "karpenter.k8s.aws/instance-gpu-count=2 karpenter.k8s.aws/instance-gpu-memory=40960", "2 vgpu 8192 ? limit"},
		{"two kinds of instances in one pod", quantities("nvidia.com/mig-3g.40gb", 1, "nvidia.com/mig-1g.10gb", 2), quantities("nvidia.com/mig-3g.40gb", 2, "nvidia.com/mig-1g.10gb", 4), mixed,
			"2 mig 1g.10gb 9984 0.143 hardware; 1 mig 3g.40gb 40448 0.429 hardware"},
		{"no GPU is asked for", quantities("cpu", 1), quantities("nvidia.com/gpu", 1), t4 + "1", ""},
		{"more units than cards and no mark", quantities("nvidia.com/gpu", 1), quantities("nvidia.com/gpu", 56), "kubernetes.azure.com/agentpool=mig", "1 unknown ? ? unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shape := asking(test.asks)
			got := landing.SlicesOf(sharing.Reader{}, &shape, []landing.Node{gpuNode("n", test.units, test.marks)})
			if diff := cmp.Diff(test.want, sliceText(got)); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASliceOfACutCardIsItsProfile has an A100 with 80 GB that HAMi cuts on request.
func TestASliceOfACutCardIsItsProfile(t *testing.T) {
	read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: map[string]int64{"nvidia.com/gpu": 7},
		Annotations: map[string]string{"hami.io/node-nvidia-register": "GPU-0,7,81920,100,NVIDIA A100-SXM4-80GB,0,true,0,mig:"}})
	n := gpuNode("n", quantities("nvidia.com/gpu", 7), "")
	n.GPUs = &read
	for _, test := range []struct {
		asks map[string]int64
		want string
	}{
		{quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 12000), "1 vgpu 2g.20gb 19968 0.286 hardware"},
		{quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem-percentage", 40), "1 vgpu 3g.40gb 40192 0.429 hardware"},
		{quantities("nvidia.com/gpu", 1), "1 vgpu 7g.80gb 80384 1.000 hardware"},
	} {
		shape := asking(test.asks)
		if diff := cmp.Diff(test.want, sliceText(landing.SlicesOf(sharing.Reader{}, &shape, []landing.Node{n}))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.asks, diff)
		}
	}
}

func TestWithoutNodesASliceIsWhatTheTemplateTells(t *testing.T) {
	tests := []struct {
		name     string
		asks     map[string]int64
		selector string
		want     string
	}{
		{"an instance's name tells its profile", quantities("nvidia.com/mig-1g.10gb", 1), "", "1 mig 1g.10gb ~10240 0.143 hardware"},
		{"the selected product tells the memory", quantities("nvidia.com/mig-1g.10gb", 1), "n/gpu.product=NVIDIA-A100-80GB-PCIe", "1 mig 1g.10gb 9728 0.143 hardware"},
		{"where products differ in compute it is not known", quantities("nvidia.com/mig-1g.24gb", 1), "", "1 mig 1g.24gb ~24576 ? hardware"},
		{"nvidia.com/gpu may be anything", quantities("nvidia.com/gpu", 1), "", "1 unknown ? ? unknown"},
		{"also where a cloud's accelerator is selected, which can be shared", quantities("nvidia.com/gpu", 1), "cloud.google.com/gke-accelerator=nvidia-l4", "1 unknown ? ? unknown"},
		{"a selected partition", quantities("nvidia.com/gpu", 1), "cloud.google.com/gke-gpu-partition-size=1g.5gb", "1 mig 1g.5gb ~5120 0.143 hardware"},
		{"a selected product of feature discovery", quantities("nvidia.com/gpu", 1), "n/gpu.product=Tesla-T4", "1 whole ? 1.000 hardware"},
		{"one that is shared may be by time-slicing or by MPS", quantities("nvidia.com/gpu", 1), "n/gpu.product=Tesla-T4-SHARED", "1 unknown ? ? unknown"},
		{"gpu-mem may count GiB, MiB or 128 MiB", quantities("aliyun.com/gpu-mem", 4), "", "4 gpu-mem ? ? unknown"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			shape := asking(test.asks)
			shape.Selector = labels(test.selector)
			got := landing.SlicesOf(sharing.Reader{}, &shape, nil)
			if diff := cmp.Diff(test.want, sliceText(got)); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhereNodesDifferTheLeastFavourableSliceCountsAndTheDifferenceIsTold(t *testing.T) {
	whole := gpuNode("whole", quantities("nvidia.com/gpu", 1), "n/gpu.product=Tesla-T4 n/gpu.count=1 n/gpu.memory=15360 n/gpu.replicas=1")
	less := gpuNode("less", quantities("nvidia.com/gpu", 1), "n/gpu.product=Tesla-T4 n/gpu.count=1 n/gpu.memory=15109 n/gpu.replicas=1")
	mps := gpuNode("mps", quantities("nvidia.com/gpu", 4), "n/gpu.product=Tesla-T4-SHARED n/gpu.count=1 n/gpu.memory=15360 n/gpu.replicas=4 n/gpu.sharing-strategy=mps")
	small := gpuNode("small", quantities("nvidia.com/gpu", 0), "")
	tests := []struct {
		name  string
		nodes []landing.Node
		want  string
		tells int
	}{
		{"some MiB are no difference in kind", []landing.Node{whole, less, small}, "1 whole 15109 1.000 hardware", 0},
		{"a share is", []landing.Node{whole, mps}, "1 mps 3840 0.250 limit", 2},
		{"in either order", []landing.Node{mps, less, whole}, "1 mps 3840 0.250 limit", 2},
	}
	shape := asking(quantities("nvidia.com/gpu", 1))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := landing.SlicesOf(sharing.Reader{}, &shape, test.nodes)
			if text := sliceText(got); text != test.want || len(got[0].Differ) != test.tells {
				t.Errorf("slice %s, differences %q; want %s and %d", text, got[0].Differ, test.want, test.tells)
			}
		})
	}
}

func TestASliceHasWhatTheRayContainerGets(t *testing.T) {
	hami := gpuNode("n", quantities("nvidia.com/gpu", 10), "gpu=on aliyun.accelerator/nvidia_count=1")
	ack := gpuNode("n", quantities("aliyun.com/gpu-mem", 60), "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=4")
	for _, test := range []struct {
		all, own map[string]int64
		node     landing.Node
		want     string
	}{
		{quantities("nvidia.com/gpu", 2, "nvidia.com/gpumem", 16000), quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 3000), hami, "1 vgpu 3000 ? limit"},
		{quantities("aliyun.com/gpu-mem", 12), quantities("aliyun.com/gpu-mem", 6), ack, "6 gpu-mem 1024 ? limit"},
	} {
		shape := asking(test.all)
		shape.Own = asking(test.own).Requests
		if got := sliceText(landing.SlicesOf(sharing.Reader{}, &shape, []landing.Node{test.node})); got != test.want {
			t.Errorf("%v of %v: slice %s, want %s", test.own, test.all, got, test.want)
		}
	}
}

func TestARayGPUIsItsPartOfThePodsUnits(t *testing.T) {
	memory, compute := int64(1024), 0.05
	slice := landing.Slice{Kind: gpuinfo.GPUMemory, UnitsPerPod: 4, MemoryMiB: &memory, ComputeFraction: &compute}
	gotMemory, gotCompute := slice.Each(raydemand.One)
	if gotMemory == nil || *gotMemory != 4096 || gotCompute == nil || *gotCompute != 0.2 {
		t.Errorf("four units announced as one GPU: %v MiB, %v of a card; want 4096 and 0.2", gotMemory, gotCompute)
	}
	if gotMemory, _ := slice.Each(2 * raydemand.One); *gotMemory != 2048 {
		t.Errorf("four units announced as two GPUs: %d MiB each, want 2048", *gotMemory)
	}
	if m, c := slice.Each(0); m != nil || c != nil {
		t.Errorf("units that are announced as no GPU: %v, %v; want nothing", m, c)
	}
	if m, c := (landing.Slice{UnitsPerPod: 1}).Each(raydemand.One); m != nil || c != nil {
		t.Errorf("unknown memory and compute: %v, %v; want nothing", m, c)
	}
}
