package landing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestCardsThatAreNotWellLowerWhatANodeHoldsAndNotWhatANewOneDoes(t *testing.T) {
	ill := func(n landing.Node, capacity map[string]int64, annotations map[string]string) landing.Node {
		read := sharing.Reader{}.Read(sharing.NodeObject{Labels: n.Labels, Annotations: annotations, Allocatable: capacity, Pods: []sharing.Pod{}})
		n.Pool, n.GPUs = "a", &read
		return n
	}
	whole := ill(gpuNode("n", quantities("nvidia.com/gpu", 4), "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB"), quantities("nvidia.com/gpu", 4), agentSees("well", "ill", "well", "well"))
	none := ill(gpuNode("n", quantities("nvidia.com/gpu", 1), "nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB"), quantities("nvidia.com/gpu", 1), agentSees("ill"))
	const four = "ack.node.gpu.schedule=cgpu aliyun.accelerator/nvidia_count=4"
	parts := ill(gpuNode("n", quantities("aliyun.com/gpu-mem", 60), four), quantities("aliyun.com/gpu-mem", 60), agentSees("well", "ill", "well", "well"))
	spread := asking(quantities("aliyun.com/gpu-mem", 20))
	spread.CardsAsked = 4
	tests := []struct {
		name  string
		shape landing.PodShape
		node  landing.Node
		room  string
		why   string
	}{
		{"three of four cards, and four on each node to come", asks("nvidia.com/gpu", 1), whole, "a 4/3 +1 +4", ""},
		{"all four of a node", asks("nvidia.com/gpu", 4), whole, "a 1/0 +1 +1", "node n has 3 nvidia.com/gpu on healthy cards where 4 is needed"},
		{"the only card", asks("nvidia.com/gpu", 1), none, "a 1/0 +1 +1", "node n has 0 nvidia.com/gpu on healthy cards where 1 is needed"},
		{"parts of cards", asking(quantities("aliyun.com/gpu-mem", 8)), parts, "a 4/3 +1 +4", ""},
		{"parts of all cards", spread, parts, "a 3/0 +1 +3", "node n has 3 healthy cards where 4 are needed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nodes := []landing.Node{test.node}
			rooms := landing.Rooms(nodes, landing.Config{Pools: []landing.Spec{{Name: "a", MaxNodes: new(int64(2))}}}, nil)
			if diff := cmp.Diff(test.room, roomText(landing.WhereOn(rooms, nodes, &test.shape).Pods)); diff != "" {
				t.Errorf("room (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.why, test.shape.Fit(nodes).Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCardsOfANodeThatDifferCountEachForItself(t *testing.T) {
	of := func(register string, memory int) landing.Node {
		units := quantities("volcano.sh/vgpu-number", 16, "volcano.sh/vgpu-memory", memory, "volcano.sh/vgpu-cores", 200)
		n := gpuNode("n", units, "")
		read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units, Capacity: units, Pods: []sharing.Pod{},
			Annotations: map[string]string{"volcano.sh/node-vgpu-register": register}})
		n.Pool, n.GPUs = "a", &read
		n.Use = &landing.Use{Cards: read.PerCard}
		return n
	}
	inMiB := of("GPU-b,4,24576,NVIDIA-NVIDIA A30,true,hami-core:GPU-a,12,81920,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:", 106496)
	ill := of("GPU-b,4,24576,NVIDIA-NVIDIA A30,true,hami-core:GPU-a,12,81920,NVIDIA-NVIDIA A100-SXM4-80GB,false,hami-core:", 106496)
	unreadable := of("GPU-b,4,24576,NVIDIA-NVIDIA A30:", 106496)
	request := func(cards, memory int) landing.PodShape {
		return asking(quantities("volcano.sh/vgpu-number", cards, "volcano.sh/vgpu-memory", memory))
	}
	for _, test := range []struct {
		name  string
		shape landing.PodShape
		node  landing.Node
		room  string
	}{
		{"only the large card holds it, twice", request(1, 30000), inMiB, "a 2/2 +1 +2"},
		{"each card has its own number of shares", request(1, 4096), inMiB, "a 16/16 +1 +16"},
		{"a part of both", request(2, 10000), inMiB, "a 2/2 +1 +2"},
		{"the large card is not well", request(1, 30000), ill, "a 2/0 +1 +2"},
		{"a register that cannot be read bounds no card", request(1, 30000), unreadable, "a 3/3 +1 +3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodes := []landing.Node{test.node}
			rooms := landing.Rooms(nodes, landing.Config{Pools: []landing.Spec{{Name: "a", MaxNodes: new(int64(2))}}}, nil)
			if diff := cmp.Diff(test.room, roomText(landing.WhereOn(rooms, nodes, &test.shape).Pods)); diff != "" {
				t.Errorf("room (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACardThatIsNotWellIsNoneToCut(t *testing.T) {
	read := sharing.Reader{}.Read(sharing.NodeObject{
		Labels:      labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=2"),
		Allocatable: quantities("nvidia.com/mig-3g.20gb", 4), Annotations: agentSees("well:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb"),
	})
	cards, known := read.CutCards()
	product, _ := gpuinfo.ProductOf("NVIDIA A100-SXM4-40GB")
	want := sharing.CutCards{Product: product.Name, Count: 1, Cut: []sharing.Cut{{Profile: "3g.20gb", Count: 2}}}
	if diff := cmp.Diff(want, cards); diff != "" || !known {
		t.Errorf("known %t (-want +got):\n%s", known, diff)
	}
}

// agentSees returns an agent's report of A100 cards, one for each word: "well" or "ill", followed by MIG instances
// after colons.
func agentSees(words ...string) map[string]string {
	var cards []string
	for i, word := range words {
		state, layout, cut := strings.Cut(word, ":")
		var instances []string
		start := 0
		for profile := range strings.SplitSeq(layout, ":") {
			if profile != "" {
				instances = append(instances, fmt.Sprintf(`{"profile":%q,"start":%d}`, profile, start))
				start += 4
			}
		}
		cards = append(cards, fmt.Sprintf(`{"index":%d,"uuid":"GPU-%d","product":"NVIDIA A100-SXM4-40GB","memoryMiB":40960,"freeMiB":null,"mig":{"enabled":%t,"instances":[%s]},"healthy":%t,"problem":""}`,
			i, i, cut, strings.Join(instances, ","), state == "well"))
	}
	return map[string]string{sharing.AgentAnnotation: `{"cards":[` + strings.Join(cards, ",") + `]}`}
}
