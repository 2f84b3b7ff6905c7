package nodepool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// agentSees is an agent's report of A100 cards, one for each word: "well" or "ill", with MIG instances behind colons.
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
	return map[string]string{nodepool.AgentAnnotation: `{"cards":[` + strings.Join(cards, ",") + `]}`}
}

func TestUnitsOfCardsThatAreNotWellAreTold(t *testing.T) {
	a100 := func(more string) map[string]string {
		return labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=4 " + more)
	}
	hami := agentSees("well", "ill")
	hami["hami.io/node-nvidia-register"] = "GPU-0,10,8000,100,A2,0,true:GPU-1,10,8000,100,A2,0,true:"
	tests := []struct {
		name string
		node nodepool.NodeObject
		want map[string]int64
	}{
		{"all are well", nodepool.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well", "well", "well", "well")}, nil},
		{"one of four whole cards", nodepool.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well", "ill", "well", "well")},
			quantities("nvidia.com/gpu", 3)},
		{"one that the plugin withdrew already", nodepool.NodeObject{Labels: a100(""), Capacity: quantities("nvidia.com/gpu", 4), Allocatable: quantities("nvidia.com/gpu", 3),
			Annotations: agentSees("well", "ill", "well", "well")}, nil},
		{"shares of cards", nodepool.NodeObject{Labels: a100("nvidia.com/gpu.replicas=5 nvidia.com/gpu.sharing-strategy=time-slicing"), Allocatable: quantities("nvidia.com/gpu", 20),
			Annotations: agentSees("well", "ill", "ill", "well")}, quantities("nvidia.com/gpu", 10)},
		{"instances under their own names", nodepool.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 3, "nvidia.com/mig-1g.5gb", 1),
			Annotations: agentSees("well:3g.20gb:1g.5gb", "ill:3g.20gb:3g.20gb", "well:", "well:")}, quantities("nvidia.com/mig-3g.20gb", 1)},
		{"cards beside cut ones", nodepool.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 2, "nvidia.com/gpu", 3),
			Annotations: agentSees("well:3g.20gb:3g.20gb", "ill", "well", "well")}, quantities("nvidia.com/gpu", 2)},
		{"instances under the name of cards", nodepool.NodeObject{Labels: labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-3g.20gb nvidia.com/mig.strategy=single nvidia.com/gpu.count=4"),
			Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb")}, quantities("nvidia.com/gpu", 2)},
		{"a layout that cannot be tells of no instances", nodepool.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 4),
			Annotations: agentSees("well:3g.20gb:3g.20gb:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb")}, nil},
		{"memory in units", nodepool.NodeObject{Labels: labels("ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4"),
			Allocatable: quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400), Annotations: agentSees("well", "ill", "well", "well"), Pods: []nodepool.PodObject{}},
			quantities("aliyun.com/gpu-mem", 45, "aliyun.com/gpu-core.percentage", 300)},
		{"HAMi's shares", nodepool.NodeObject{Allocatable: quantities("nvidia.com/gpu", 20), Annotations: hami, Pods: []nodepool.PodObject{}}, quantities("nvidia.com/gpu", 10)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := nodepool.GPUReader{}.Read(test.node)
			if diff := cmp.Diff(test.want, read.WellUnits); diff != "" {
				t.Errorf("kind %s, problems %v (-want +got):\n%s", read.Kind, read.Problems, diff)
			}
		})
	}
}

func TestCardsThatAreNotWellLowerWhatANodeHoldsAndNotWhatANewOneDoes(t *testing.T) {
	ill := func(n nodepool.Node, capacity map[string]int64, annotations map[string]string) nodepool.Node {
		read := nodepool.GPUReader{}.Read(nodepool.NodeObject{Labels: n.Labels, Annotations: annotations, Allocatable: capacity, Pods: []nodepool.PodObject{}})
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
		shape nodepool.PodShape
		node  nodepool.Node
		room  string
		why   string
	}{
		{"three of four cards, and four on each node to come", asks("nvidia.com/gpu", 1), whole, "a 4/3 +1 +4", ""},
		{"all four of a node", asks("nvidia.com/gpu", 4), whole, "a 1/0 +1 +1", "node n has nvidia.com/gpu 3 on cards that are well where 4 is needed"},
		{"the only card", asks("nvidia.com/gpu", 1), none, "a 1/0 +1 +1", "node n has nvidia.com/gpu 0 on cards that are well where 1 is needed"},
		{"parts of cards", asking(quantities("aliyun.com/gpu-mem", 8)), parts, "a 4/3 +1 +4", ""},
		{"parts of all cards", spread, parts, "a 3/0 +1 +3", "node n has 3 cards that are well where 4 are needed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			nodes := []nodepool.Node{test.node}
			rooms := nodepool.PoolRooms(nodes, nodepool.PoolsConfig{Pools: []nodepool.PoolSpec{{Name: "a", MaxNodes: new(int64(2))}}}, nil)
			if diff := cmp.Diff(test.room, roomText(test.shape.PoolPods(rooms, nodes))); diff != "" {
				t.Errorf("room (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.why, test.shape.Land(nodes).Why); diff != "" {
				t.Errorf("why (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACardThatIsNotWellIsNoneToCut(t *testing.T) {
	read := nodepool.GPUReader{}.Read(nodepool.NodeObject{
		Labels:      labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=2"),
		Allocatable: quantities("nvidia.com/mig-3g.20gb", 4), Annotations: agentSees("well:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb"),
	})
	cards, known := read.PoolCards()
	product, _ := gpuinfo.ProductOf("NVIDIA A100-SXM4-40GB")
	want := nodepool.PoolCards{Product: product.Name, Count: 1, Cut: []nodepool.CardCut{{Profile: "3g.20gb", Count: 2}}}
	if diff := cmp.Diff(want, cards); diff != "" || !known {
		t.Errorf("known %t (-want +got):\n%s", known, diff)
	}
}
