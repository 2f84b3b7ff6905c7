package sharing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestUnitsOfCardsThatAreNotWellAreTold(t *testing.T) {
	a100 := func(more string) map[string]string {
		return labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=4 " + more)
	}
	hami := agentSees("well", "ill")
	hami["hami.io/node-nvidia-register"] = "GPU-0,10,8000,100,A2,0,true:GPU-1,10,8000,100,A2,0,true:"
	tests := []struct {
		name string
		node sharing.NodeObject
		want map[string]int64
	}{
		{"all are well", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well", "well", "well", "well")}, nil},
		{"one of four whole cards", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well", "ill", "well", "well")},
			quantities("nvidia.com/gpu", 3)},
		{"one that the plugin withdrew already", sharing.NodeObject{Labels: a100(""), Capacity: quantities("nvidia.com/gpu", 4), Allocatable: quantities("nvidia.com/gpu", 3),
			Annotations: agentSees("well", "ill", "well", "well")}, nil},
		{"shares of cards", sharing.NodeObject{Labels: a100("nvidia.com/gpu.replicas=5 nvidia.com/gpu.sharing-strategy=time-slicing"), Allocatable: quantities("nvidia.com/gpu", 20),
			Annotations: agentSees("well", "ill", "ill", "well")}, quantities("nvidia.com/gpu", 10)},
		{"instances under their own names", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 3, "nvidia.com/mig-1g.5gb", 1),
			Annotations: agentSees("well:3g.20gb:1g.5gb", "ill:3g.20gb:3g.20gb", "well:", "well:")}, quantities("nvidia.com/mig-3g.20gb", 1)},
		{"cards beside cut ones", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 2, "nvidia.com/gpu", 3),
			Annotations: agentSees("well:3g.20gb:3g.20gb", "ill", "well", "well")}, quantities("nvidia.com/gpu", 2)},
		{"instances under the name of cards", sharing.NodeObject{Labels: labels("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-3g.20gb nvidia.com/mig.strategy=single nvidia.com/gpu.count=4"),
			Allocatable: quantities("nvidia.com/gpu", 4), Annotations: agentSees("well:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb")}, quantities("nvidia.com/gpu", 2)},
		{"a layout that cannot be tells of no instances", sharing.NodeObject{Labels: a100(""), Allocatable: quantities("nvidia.com/mig-3g.20gb", 4),
			Annotations: agentSees("well:3g.20gb:3g.20gb:3g.20gb:3g.20gb", "ill:3g.20gb:3g.20gb")}, nil},
		{"memory in units", sharing.NodeObject{Labels: labels("ack.node.gpu.schedule=core_mem aliyun.accelerator/nvidia_count=4"),
			Allocatable: quantities("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400), Annotations: agentSees("well", "ill", "well", "well"), Pods: []sharing.Pod{}},
			quantities("aliyun.com/gpu-mem", 45, "aliyun.com/gpu-core.percentage", 300)},
		{"HAMi's shares", sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 20), Annotations: hami, Pods: []sharing.Pod{}}, quantities("nvidia.com/gpu", 10)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(test.node)
			if diff := cmp.Diff(test.want, read.HealthyUnits); diff != "" {
				t.Errorf("kind %s, problems %v (-want +got):\n%s", read.Kind, read.Problems, diff)
			}
		})
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
