package landing_test

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// TestAShareOfKAIIsBoundedByItsCards has what KAI's source says (docs/reference/facts.md#kai-shares): the memory of a
// card is that of the label, in hundreds of MiB.
func TestAShareOfKAIIsBoundedByItsCards(t *testing.T) {
	const l40s = "nvidia.com/gpu.product=NVIDIA-L40S nvidia.com/gpu.memory=46068 nvidia.com/gpu.count=4"
	memory := func(mib int64, value string) *sharing.CardShare {
		return &sharing.CardShare{Annotation: "gpu-memory", Value: value, Cards: 1, MemoryMiB: mib}
	}
	half := &sharing.CardShare{Annotation: "gpu-fraction", Value: "0.5", Cards: 1, PerCard: 2}
	ofTwo := memory(5500, "5500")
	ofTwo.Cards = 2
	for _, test := range []struct {
		name   string
		share  *sharing.CardShare
		node   landing.Node
		pods   int64
		reason string
	}{
		{"23 of 2000 MiB on each card", memory(2000, "2000"), gpuNode("n", quantities("nvidia.com/gpu", 4), l40s), 4 * 23, ""},
		{"8 of 5500 MiB", memory(5500, "5500"), gpuNode("n", quantities("nvidia.com/gpu", 1), l40s), 8, ""},
		{"on two cards each", ofTwo, gpuNode("n", quantities("nvidia.com/gpu", 4), l40s), 16, ""},
		{"more than a card has", memory(60000, "60000"), gpuNode("n", quantities("nvidia.com/gpu", 4), l40s), 0,
			"has cards of 46000 MiB where 60000 is needed for the annotation gpu-memory: 60000"},
		{"the rest of a hundred does not count", memory(46050, "46050"), gpuNode("n", quantities("nvidia.com/gpu", 4), l40s), 0, "has cards of 46000 MiB"},
		{"a label in bytes", memory(5000, "5000"), gpuNode("n", quantities("nvidia.com/gpu", 1), "nvidia.com/gpu.product=T4 nvidia.com/gpu.memory=16106127360"), 3, ""},
		{"no label", memory(8000, "8000"), gpuNode("n", quantities("nvidia.com/gpu", 1), "nvidia.com/gpu.product=NVIDIA-GB10"), landing.Unbounded,
			"lacks the label nvidia.com/gpu.memory, without which the KAI scheduler places no pod with the annotation gpu-memory: 8000"},
		{"no label, a fraction", half, gpuNode("n", quantities("nvidia.com/gpu", 1), "nvidia.com/gpu.product=NVIDIA-GB10"), 2, ""},
		{"instances under the name of cards", half, gpuNode("n", quantities("nvidia.com/gpu", 4),
			"nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3-MIG-1g.20gb nvidia.com/mig.strategy=single nvidia.com/gpu.count=4 nvidia.com/gpu.memory=20096"), 8,
			"has MIG instances, of which the KAI scheduler gives no part (the annotation gpu-fraction: 0.5)"},
		{"cards beside instances", half, gpuNode("n", quantities("nvidia.com/gpu", 1, "nvidia.com/mig-1g.20gb", 4),
			"nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 nvidia.com/mig.strategy=mixed nvidia.com/gpu.count=2"), 2, "has MIG instances"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shape := asks("cpu", 0)
			shape.Share = test.share
			if got := landing.PodsOn(&shape, &test.node); test.pods > 0 && got != test.pods {
				t.Errorf("%d pods, want %d", got, test.pods)
			}
			fit := shape.Fit([]landing.Node{test.node})
			if fit.None() != (test.reason != "") || !strings.Contains(fit.Why, test.reason) {
				t.Errorf("fits on %d nodes, reason %q, want %q", fit.Nodes, fit.Why, test.reason)
			}
		})
	}
	declared := gpuNode("pool", quantities("nvidia.com/gpu", 1), "")
	declared.Declared = true
	shape := asks("cpu", 0)
	shape.Share = memory(8000, "8000")
	if fit := shape.Fit([]landing.Node{declared}); fit.None() {
		t.Errorf("a declared pool shows no label, and is refused: %s", fit.Why)
	}
}

func TestAPodFitsWhereEnoughCardsAreWhatItWants(t *testing.T) {
	const register = `[{"id":"GPU-a","count":10,"devmem":81920,"devcore":100,"type":"NVIDIA A100-SXM4-80GB","mode":"hami-core","health":true},` +
		`{"id":"GPU-b","index":1,"count":10,"devmem":81920,"devcore":100,"type":"NVIDIA H100 80GB HBM3","mode":"hami-core","health":true}]`
	n := gpuNode("n", quantities("nvidia.com/gpu", 20), "")
	read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: map[string]int64{"nvidia.com/gpu": 20}, Annotations: map[string]string{"hami.io/node-nvidia-register": register}})
	n.GPUs = &read
	for _, test := range []struct {
		name, key, value string
		cards            int
		reason           string
	}{
		{"one card is of the type", "nvidia.com/use-gputype", "H100", 1, ""},
		{"two are needed", "nvidia.com/use-gputype", "H100", 2, "node n has a card of type NVIDIA A100-SXM4-80GB where the pod has the annotation nvidia.com/use-gputype: H100"},
		{"none has the mode", "nvidia.com/vgpu-mode", "mig", 1, "node n has a card in mode hami-core where the pod has the annotation nvidia.com/vgpu-mode: mig"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shape := asking(quantities("nvidia.com/gpu", test.cards, "nvidia.com/gpumem", 8000))
			shape.Choice = sharing.CardChoiceOf(map[string]string{test.key: test.value})
			if fit := shape.Fit([]landing.Node{n}); fit.Why != test.reason {
				t.Errorf("reason %q, want %q", fit.Why, test.reason)
			}
		})
	}
}

// TestANodeWithoutHAMisRegisterGivesNoPartOfACard has a node whose annotations are shown, or which is read from an API
// server, and an excerpt, which may leave them out.
func TestANodeWithoutHAMisRegisterGivesNoPartOfACard(t *testing.T) {
	const refused = "node n has no cards that HAMi registers, so HAMi's scheduler gives no part of them"
	part := quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 8000)
	for _, test := range []struct {
		name        string
		reader      sharing.Reader
		annotations map[string]string
		requests    map[string]int64
		want        string
	}{
		{"an excerpt", sharing.Reader{}, nil, part, ""},
		{"a file with other annotations", sharing.Reader{}, map[string]string{"a": "b"}, part, refused},
		{"an API server", sharing.Reader{At: time.Unix(1, 0)}, nil, part, refused},
		{"a pod without a part of a card", sharing.Reader{At: time.Unix(1, 0)}, nil, quantities("nvidia.com/gpu", 1), ""},
		{"a register", sharing.Reader{At: time.Unix(1, 0)}, map[string]string{"hami.io/node-nvidia-register": "GPU-a,8,24576,100,NVIDIA L4,0,true:"}, part, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := gpuNode("n", quantities("nvidia.com/gpu", 8), "")
			read := test.reader.Read(sharing.NodeObject{Allocatable: map[string]int64{"nvidia.com/gpu": 8}, Annotations: test.annotations})
			n.GPUs = &read
			shape := asking(test.requests)
			if fit := shape.Fit([]landing.Node{n}); fit.Why != test.want {
				t.Errorf("reason %q, want %q", fit.Why, test.want)
			}
		})
	}
}
