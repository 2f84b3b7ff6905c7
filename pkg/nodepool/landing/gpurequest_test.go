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
		{"a label that is no number of cards", landing.PodShape{Requests: asking(quantities(memory, 4)).Requests, CardsInvalid: `"x"`}, []string{landing.GPUAmountImpossible, "aliyun.com/gpu-count", `"x"`, "whole number"}},
		{"less than none", part("nvidia.com/gpu", -raydemand.One), []string{landing.GPURequestInvalid, "nvidia.com/gpu", "-1", "whole number"}},
		{"half a CPU", part("cpu", raydemand.One/2), nil},
		{"seven percent of cores", asking(quantities(memory, 4, cores, 7)), []string{landing.GPURequestInvalid, cores, "7", "ask for 5"}},
		{"a hundred and five", asking(quantities(memory, 4, cores, 105)), []string{landing.GPURequestInvalid, cores, "105", "ask for 100"}},
		{"a hundred", asking(quantities(memory, 4, cores, 100)), nil},
		{"cores without memory", asking(quantities(cores, 20)), []string{landing.GPURequestInvalid, cores, "20", "ask for aliyun.com/gpu-mem too"}},
		{"memory that does not spread", landing.PodShape{Requests: asking(quantities(memory, 9)).Requests, CardsAsked: 2},
			[]string{landing.GPURequestInvalid, memory, "9", "multiple of the number of cards"}},
		{"cores over several cards", landing.PodShape{Requests: asking(quantities(memory, 8, cores, 20)).Requests, CardsAsked: 2},
			[]string{landing.GPURequestInvalid, cores, "20", "leave out the pod label aliyun.com/gpu-count"}},
		{"whole cards of Koordinator", asking(quantities("koordinator.sh/gpu", 200)), nil},
		{"a card and a half of Koordinator", asking(quantities("koordinator.sh/gpu", 150)), []string{landing.GPURequestInvalid, "koordinator.sh/gpu", "150", "ask for 200"}},
		{"a card and a half of memory", asking(quantities("koordinator.sh/gpu-core", 50, "koordinator.sh/gpu-memory-ratio", 150)),
			[]string{landing.GPURequestInvalid, "koordinator.sh/gpu-memory-ratio", "150", "ask for 200"}},
		{"equal shares of several cards", asking(quantities("koordinator.sh/gpu.shared", 2, "koordinator.sh/gpu-memory-ratio", 150)), nil},
		{"unequal shares of several cards", asking(quantities("koordinator.sh/gpu.shared", 2, "koordinator.sh/gpu-memory-ratio", 75)),
			[]string{landing.GPURequestInvalid, "koordinator.sh/gpu-memory-ratio", "75", "multiple of 2"}},
		{"two stacks refuse it", asking(quantities(cores, 20, "koordinator.sh/gpu", 150)),
			[]string{landing.GPURequestInvalid, cores, "20", "ask for aliyun.com/gpu-mem too", landing.GPURequestInvalid, "koordinator.sh/gpu", "150", "ask for 200, or for at most 100"}},
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
