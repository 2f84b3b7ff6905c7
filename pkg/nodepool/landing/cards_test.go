package landing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func TestAPodMustFitOneCardWhateverTheSumIs(t *testing.T) {
	const ack = "aliyun.accelerator/nvidia_count=4 ack.node.gpu.schedule="
	mem := func(n int) map[string]int64 { return quantities("aliyun.com/gpu-mem", n) }
	both := quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400)
	volcano := quantities("volcano.sh/vgpu-number", 20, "volcano.sh/vgpu-memory", 16384, "volcano.sh/vgpu-cores", 200)
	tests := []struct {
		name  string
		shape landing.PodShape
		node  landing.Node
		why   string
	}{
		{"16 GiB on four cards of 15", asking(mem(16)), gpuNode("n", mem(60), ack+"cgpu"), "node n has cards of aliyun.com/gpu-mem 15 where 16 of one card is needed"},
		{"15 GiB on them", asking(mem(15)), gpuNode("n", mem(60), ack+"cgpu"), ""},
		{"16 GiB over two cards", landing.PodShape{Requests: asking(mem(16)).Requests, CardsAsked: 2}, gpuNode("n", mem(60), ack+"cgpu"), ""},
		{"over more cards than there are", landing.PodShape{Requests: asking(mem(16)).Requests, CardsAsked: 8}, gpuNode("n", mem(60), ack+"cgpu"), "node n has 4 cards where 8 are needed"},
		{"how large a card is, is not known", asking(mem(16)), gpuNode("n", mem(60), "ack.node.gpu.schedule=cgpu"), ""},
		{"memory alone on a node for memory and cores", asking(mem(4)), gpuNode("n", both, ack+"core_mem"),
			"node n takes requests for aliyun.com/gpu-mem with aliyun.com/gpu-core.percentage only"},
		{"memory and cores on it", asking(quantities("aliyun.com/gpu-mem", 4, "aliyun.com/gpu-core.percentage", 20)), gpuNode("n", both, ack+"core_mem"), ""},
		{"memory and cores on a node for memory alone", asking(quantities("aliyun.com/gpu-mem", 4, "aliyun.com/gpu-core.percentage", 20)), gpuNode("n", mem(60), ack+"cgpu"),
			"needs aliyun.com/gpu-core.percentage 20, no node announces it"},
		{"Volcano", asking(quantities("volcano.sh/vgpu-number", 1, "volcano.sh/vgpu-memory", 9000)), gpuNode("n", volcano, ""),
			"node n has cards of volcano.sh/vgpu-memory 8192 where 9000 of one card is needed"},
	}
	hami := func(cores int) landing.PodShape {
		return asking(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 1000, "nvidia.com/gpucores", cores))
	}
	for cores, want := range map[int]int64{30: 30, 100: 100, 101: 100, 400: 100} {
		shape := hami(cores)
		if part := (&landing.Nodes{}).KindOf("", &shape).Cards; part == nil || *part != (landing.CardRequest{Cards: 1, Memory: 1000, Cores: want}) {
			t.Errorf("%d gpucores of HAMi: %+v, want %d percent of one card", cores, part, want)
		}
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			landing := test.shape.Fit([]landing.Node{test.node})
			if diff := cmp.Diff(test.why, landing.Why); diff != "" || landing.None() != (test.why != "") {
				t.Errorf("%d nodes (-want +got):\n%s", landing.Nodes, diff)
			}
		})
	}
}

func TestADeclaredShapeIsAPlaceToLandWithoutBeingANode(t *testing.T) {
	declared := gpuNode("a10", quantities("nvidia.com/gpu", 1), "")
	declared.Declared = true
	shape := asking(quantities("nvidia.com/gpu", 1))
	if diff := cmp.Diff(landing.Answer{Shapes: []string{"a10"}}, shape.Fit([]landing.Node{node("cpu"), declared})); diff != "" {
		t.Errorf("landing (-want +got):\n%s", diff)
	}
	shape = asking(quantities("nvidia.com/gpu", 2))
	want := "the nearest of 2 nodes: pool a10, as it is declared, has nvidia.com/gpu 1 where 2 is needed"
	if diff := cmp.Diff(landing.Answer{Why: want}, shape.Fit([]landing.Node{node("cpu"), declared})); diff != "" {
		t.Errorf("landing (-want +got):\n%s", diff)
	}
}
