package landing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
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
		{"more than all memory of a card of Volcano", asking(quantities("volcano.sh/vgpu-number", 1, "volcano.sh/vgpu-memory-percentage", 150)), gpuNode("n", volcano, ""),
			"node n has 100 percent of the memory of each card where volcano.sh/vgpu-memory-percentage 150 of one card is needed"},
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

// registered is an entry of HAMi's register (release 2.9 and later), with more of its fields.
func registered(uuid, model, mode string, count, mib int, more string) string {
	return fmt.Sprintf(`{"id":%q,"count":%d,"devmem":%d,"devcore":100,"type":%q,"mode":%q,"health":true%s}`, uuid, count, mib, model, mode, more)
}

// TestEachCardIsCutByItsOwnRules has nodes of HAMi whose cards have different modes, products or profiles. A request
// takes of a card in mode mig the smallest profile that holds it, and its memory of any other.
func TestEachCardIsCutByItsOwnRules(t *testing.T) {
	const sxm40, sxm80 = "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"
	const one10, seven80 = `{"name":"1g.10gb","memoryMB":9728,"sliceCount":1}`, `{"name":"7g.80gb","memoryMB":80384,"sliceCount":7}`
	cut80, core80 := registered("GPU-a", sxm80, "mig", 7, 81920, ""), registered("GPU-b", sxm80, "hami-core", 10, 81920, "")
	cut40, alike80 := registered("GPU-c", sxm40, "mig", 7, 40960, ""), registered("GPU-d", sxm80, "hami-core", 7, 81920, "")
	newer := registered("GPU-e", "NVIDIA Z900", "mig", 7, 81920, "")
	small := registered("GPU-f", sxm80, "mig", 7, 81920, `,"migProfiles":[`+one10+`]`)
	full := registered("GPU-g", sxm80, "mig", 7, 81920, `,"migProfiles":[`+one10+`,`+seven80+`]`)
	used := sharing.Pod{Name: "p", Requests: quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 12000)}
	onA, onC := used, used
	onA.Annotations = map[string]string{"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,12000,0:;"}
	onC.Annotations = map[string]string{"hami.io/vgpu-devices-allocated": "GPU-c,NVIDIA,12000,0:;"}
	wantsMIG := sharing.CardChoiceOf(map[string]string{"nvidia.com/vgpu-mode": "mig"})
	for _, test := range []struct {
		name   string
		cards  []string
		pods   []sharing.Pod
		asks   []any
		choice sharing.CardChoice
		// empty and room are how many pods the node holds if it is empty, and still holds.
		empty, room int64
		why         string
	}{
		{"both modes: 2g.20gb three times, and memory six times", []string{cut80, core80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 9, 9, ""},
		{"both modes with as many shares and memory", []string{cut80, alike80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 9, 9, ""},
		{"both modes, one instance used", []string{cut80, core80}, []sharing.Pod{onA}, []any{"nvidia.com/gpumem", 12000}, nil, 9, 8, ""},
		{"both modes, and only mig is wanted", []string{cut80, core80}, nil, []any{"nvidia.com/gpumem", 12000}, wantsMIG, 3, 3, ""},
		{"whole cards of both modes", []string{cut80, core80}, nil, nil, nil, 17, 2, ""},
		{"more than an instance of both modes has", []string{cut80, core80}, nil, []any{"nvidia.com/gpumem", 81000}, nil, 1, 1, ""},
		{"two products: 3g.20gb twice and 2g.20gb three times", []string{cut40, cut80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 5, 5, ""},
		{"two products in the other order", []string{cut80, cut40}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 5, 5, ""},
		{"two products, half of the smaller card used", []string{cut40, cut80}, []sharing.Pod{onC}, []any{"nvidia.com/gpumem", 12000}, nil, 5, 4, ""},
		{"a pod without a record counts on each card as it is cut", []string{cut40, cut80}, []sharing.Pod{used}, []any{"nvidia.com/gpumem", 12000}, nil, 5, 3, ""},
		{"only the larger product holds it", []string{cut40, cut80}, nil, []any{"nvidia.com/gpumem", 45000}, nil, 1, 1, ""},
		{"two instances for a container", []string{cut40, cut80}, nil, []any{"nvidia.com/gpu", 2, "nvidia.com/gpumem", 12000}, nil, 2, 2, ""},
		{"alike cards of which one has no large profile", []string{small, full}, nil, []any{"nvidia.com/gpumem", 20000}, nil, 1, 1, ""},
		{"a product that no table has, beside another card", []string{newer, core80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 6, 6, ""},
		{"a product that no table has", []string{newer}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 0, 0,
			"cuts cards of model NVIDIA Z900 into MIG instances, and no profile is known to hold the request"},
		{"a whole card of it", []string{newer}, nil, nil, nil, 0, 0, "no profile is known"},
		{"a part of each of both kinds of cards", []string{cut80, core80}, nil, []any{"nvidia.com/gpu", 3, "nvidia.com/gpumem", 12000}, nil, 0, 0,
			"it is unknown how it gives a container 3 parts"},
	} {
		t.Run(test.name, func(t *testing.T) {
			units := quantities("nvidia.com/gpu", 0)
			for _, card := range test.cards {
				var count int64
				if _, err := fmt.Sscanf(card[strings.Index(card, `"count":`):], `"count":%d`, &count); err != nil {
					t.Fatal(err)
				}
				units["nvidia.com/gpu"] += count
			}
			pods := append([]sharing.Pod{}, test.pods...)
			read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units, Capacity: units, Pods: pods,
				Annotations: map[string]string{"hami.io/node-nvidia-register": "[" + strings.Join(test.cards, ",") + "]"}})
			n := gpuNode("n", units, "")
			n.Pool, n.GPUs, n.Use = "a", &read, &landing.Use{Cards: read.PerCard}
			shape := asking(quantities(append([]any{"nvidia.com/gpu", 1}, test.asks...)...))
			shape.Choice = test.choice
			stock := landing.NodesOf([]landing.Node{n}, landing.Pools{Complete: true,
				Rooms: landing.Rooms([]landing.Node{n}, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 1)})})
			answer := stock.Where(&shape)
			if test.why != "" {
				if answer.State != landing.Trying || !strings.Contains(answer.Why, test.why) {
					t.Errorf("%+v because %q, want trying because %q", answer, answer.Why, test.why)
				}
				return
			}
			kinds := []landing.Kind{stock.KindOf("g", &shape)}
			places, _ := stock.Places(kinds)
			room := landing.New([]landing.Pod{kinds[0].Pod}, places).Empty().Room(0)
			if empty := landing.PodsOn(&shape, &n); empty != test.empty || room != test.room || answer.State != landing.Fits {
				t.Errorf("%d pods when empty and room for %d, want %d and %d; %+v", empty, room, test.empty, test.room, answer)
			}
		})
	}
}

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

// TestAPodWithoutMemoryTakesWholeCardsOfAscend has a node like that of the report hami-ascend-memory: 8 cards of 32768
// MiB, each in 4 shares.
func TestAPodWithoutMemoryTakesWholeCardsOfAscend(t *testing.T) {
	const chip = "huawei.com/Ascend910B4"
	var cards []string
	for i := range 8 {
		cards = append(cards, fmt.Sprintf(`{"id":"a%d","index":%d,"count":4,"devmem":32768,"devcore":20,"type":"Ascend910B4","health":true}`, i, i))
	}
	read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: quantities(chip, 32),
		Annotations: map[string]string{"hami.io/node-register-Ascend910B4": "[" + strings.Join(cards, ",") + "]"}})
	for _, test := range []struct {
		name string
		asks []any
		used []any
		want int64
		why  string
	}{
		{"a card each", []any{chip, 1}, nil, 8, ""},
		{"two cards each", []any{chip, 2}, nil, 4, ""},
		{"more cards than there are", []any{chip, 9}, nil, 0, "has 8 cards of huawei.com/Ascend910B4 where 9 are needed"},
		{"a share each", []any{chip, 1, chip + "-memory", 8192}, nil, 32, ""},
		{"half a card each", []any{chip, 1, chip + "-memory", 16384}, nil, 16, ""},
		{"as much as HAMi's webhook writes for a whole card", []any{chip, 1, chip + "-memory", 32768}, nil, 8, ""},
		{"a card each, three used", []any{chip, 1}, []any{chip, 3, chip + "-memory", 98304}, 5, ""},
		{"a share each, one card used", []any{chip, 1, chip + "-memory", 8192}, []any{chip, 1}, 28, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := gpuNode("n", quantities(chip, 32), "")
			n.Pool, n.GPUs, n.Use = "a", &read, &landing.Use{Requests: landing.Quantities{}}
			if used := asking(quantities(test.used...)).Requests; len(used) > 0 {
				n.Use.Requests[chip] = landing.OfShares(&read, used, chip)
			}
			stock := landing.NodesOf([]landing.Node{n}, landing.Pools{Complete: true,
				Rooms: landing.Rooms([]landing.Node{n}, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 1)})})
			shape := asking(quantities(test.asks...))
			if fit := stock.Where(&shape); fit.None() != (test.why != "") || !strings.Contains(fit.Why, test.why) {
				t.Errorf("fits on %d nodes because %q, want %q", fit.Nodes, fit.Why, test.why)
			}
			kinds := []landing.Kind{stock.KindOf("g", &shape)}
			places, _ := stock.Places(kinds)
			if room := landing.New([]landing.Pod{kinds[0].Pod}, places).Empty().Room(0); room != test.want {
				t.Errorf("room for %d pods, want %d", room, test.want)
			}
			if empty := landing.PodsOn(&shape, &n); test.used == nil && empty != test.want {
				t.Errorf("an empty node holds %d pods, want %d", empty, test.want)
			}
		})
	}
}

// TestBytesOfKoordinatorCountOnEachCard has two cards of 16 GiB.
func TestBytesOfKoordinatorCountOnEachCard(t *testing.T) {
	const gib = 1 << 30
	units := quantities("koordinator.sh/gpu-core", 200, "koordinator.sh/gpu-memory", 32*gib, "koordinator.sh/gpu-memory-ratio", 200, "cpu", 99, "pods", 110)
	for _, test := range []struct {
		memory, core int
		room         int64
		why          string
	}{
		{8 * gib, 10, 4, ""}, {9 * gib, 10, 2, ""}, {9 * gib, 0, 2, ""}, {16 * gib / 3, 10, 6, ""}, {32 * gib, 200, 1, ""},
		{17 * gib, 10, 0, "node n has less koordinator.sh/gpu-memory on each card than is needed"},
	} {
		read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units, Pods: []sharing.Pod{}})
		n := gpuNode("n", units, "")
		n.Pool, n.GPUs, n.Use = "a", &read, &landing.Use{Cards: read.PerCard}
		rooms := landing.Rooms([]landing.Node{n}, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 1)})
		stock := landing.NodesOf([]landing.Node{n}, landing.Pools{Complete: true, Rooms: rooms})
		shape := asking(quantities("koordinator.sh/gpu-memory", test.memory, "koordinator.sh/gpu-core", test.core))
		kinds := []landing.Kind{stock.KindOf("g", &shape)}
		places, _ := stock.Places(kinds)
		room := landing.New([]landing.Pod{kinds[0].Pod}, places).Empty().Room(0)
		if fit := stock.Where(&shape); test.why == "" && room != test.room || !strings.Contains(fit.Why, test.why) {
			t.Errorf("%d bytes: room for %d pods, want %d; %q, want %q", test.memory, room, test.room, fit.Why, test.why)
		}
	}
}
