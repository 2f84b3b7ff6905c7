package landing_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placeText writes a place in one line: its node or pool, how many nodes, what is free of GPUs and CPUs, its cards, and
// the pods that it accepts.
func placeText(p landing.Place) string {
	words := []string{p.Node}
	switch {
	case p.AnySize:
		words = []string{"any size of " + p.Pool}
		if p.Unproven {
			words = []string{"unproven " + p.Pool}
		}
	case p.New:
		words = []string{"new of " + p.Pool}
	}
	nodes := "?"
	if p.Nodes != nil {
		nodes = fmt.Sprint(*p.Nodes)
	}
	words = append(words, "×"+nodes)
	for _, name := range slices.Sorted(maps.Keys(p.Free)) {
		if name != "memory" {
			words = append(words, fmt.Sprintf("%s %s", name[strings.Index(name, "/")+1:], p.Free[name]))
		}
	}
	for _, card := range p.Cards {
		words = append(words, fmt.Sprintf("card(%d of %d ×%d)", *card.Memory, card.Total, max(card.Count, 1)))
	}
	if p.SameNodes {
		words = append(words, "same nodes")
	}
	if len(p.Holds) > 0 {
		words = append(words, fmt.Sprint("holds ", p.Holds))
	}
	return strings.Join(append(words, "for "+strings.Join(p.Accepts, "+")), " ")
}

func used(resource string, n int64) func(*landing.Node) {
	return func(node *landing.Node) {
		node.Use = &landing.Use{Requests: landing.Quantities{resource: raydemand.Whole(n), "pods": raydemand.One}}
	}
}

func TestPlacesAreWhatIsFreeAndWhatPoolsMayAdd(t *testing.T) {
	gpu := func(name string, change ...func(*landing.Node)) landing.Node {
		return inPool("a", node(name, append([]func(*landing.Node){announces("nvidia.com/gpu", 4), labelled("kubernetes.io/hostname", name)}, change...)...))
	}
	typed := labelled("node.kubernetes.io/instance-type", "Standard_ND96asr_v4")
	declared := gpuNode("d", quantities("nvidia.com/gpu", 8), "")
	declared.Declared = true
	cards := inPool("a", gpuNode("n", quantities("aliyun.com/gpu-mem", 60), "ack.node.gpu.schedule=share aliyun.accelerator/nvidia_count=4"))
	partly := cards
	partly.Use = &landing.Use{Requests: landing.Quantities{"aliyun.com/gpu-mem": raydemand.Whole(20)}, Cards: []sharing.Card{
		{FreeUnits: new(int64(5))}, {FreeUnits: new(int64(5))}, {FreeUnits: new(int64(15))}, {FreeUnits: new(int64(15)), Healthy: new(bool)}}}
	onHost := asks("nvidia.com/gpu", 1)
	onHost.Selector = map[string]string{"kubernetes.io/hostname": "n2"}
	onNode := asks("nvidia.com/gpu", 1)
	onNode.NodeName = "n2"
	tests := []struct {
		name     string
		shapes   []landing.PodShape
		nodes    []landing.Node
		specs    []landing.Spec
		ceilings []landing.Ceiling
		want     []string
	}{
		{"equal nodes are one place", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{gpu("n1"), gpu("n2"), gpu("n3", used("nvidia.com/gpu", 3))}, nil,
			[]landing.Ceiling{ceiling("a", 0, 5)}, []string{"n1 ×2 cpu 8 gpu 4 for g0", "n3 ×1 cpu 8 gpu 1 for g0", "new of a ×2 cpu 8 gpu 4 for g0"}},
		{"without a known bound", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{gpu("n1")}, nil, nil, []string{"n1 ×1 cpu 8 gpu 4 for g0", "new of a ×? cpu 8 gpu 4 for g0"}},
		{"a full node has no place", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{gpu("n1", used("nvidia.com/gpu", 4))}, nil,
			[]landing.Ceiling{ceiling("a", 0, 1)}, []string{"new of a ×0 cpu 8 gpu 4 for g0"}},
		{"a node that is selected", []landing.PodShape{asks("nvidia.com/gpu", 1), onHost}, []landing.Node{gpu("n1"), gpu("n2")}, nil,
			[]landing.Ceiling{ceiling("a", 0, 2)}, []string{"n1 ×1 cpu 8 gpu 4 for g0", "n2 ×1 cpu 8 gpu 4 for g0+g1", "new of a ×0 cpu 8 gpu 4 for g0"}},
		{"a node that spec.nodeName names", []landing.PodShape{asks("nvidia.com/gpu", 1), onNode}, []landing.Node{gpu("n1"), gpu("n2")}, nil,
			[]landing.Ceiling{ceiling("a", 0, 3)}, []string{"n1 ×1 cpu 8 gpu 4 for g0", "n2 ×1 cpu 8 gpu 4 for g0+g1", "new of a ×1 cpu 8 gpu 4 for g0"}},
		{"a cordoned node shows what a new one is", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{gpu("n1", isCordoned)}, nil,
			[]landing.Ceiling{ceiling("a", 0, 3)}, []string{"new of a ×2 cpu 8 gpu 4 for g0"}},
		{"a node that comes up has what its type has", []landing.PodShape{asks("nvidia.com/gpu", 1), asks("cpu", 1)},
			[]landing.Node{gpu("n1", typed), inPool("a", node("n2", typed, used("cpu", 2)))}, nil, []landing.Ceiling{ceiling("a", 0, 2)},
			[]string{"n1 ×1 cpu 8 gpu 4 for g0+g1", "n2 ×1 cpu 6 gpu 4 for g0+g1", "new of a ×0 cpu 8 gpu 4 for g0+g1"}},
		{"a declared shape", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{declared}, []landing.Spec{{Name: "d", MaxNodes: new(int64(2))}}, nil,
			[]string{"new of d ×2 cpu 8 gpu 8 for g0"}},
		{"a new node has no more than the smallest that fits", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{gpu("n1"), gpu("n2", announces("nvidia.com/gpu", 8))}, nil,
			[]landing.Ceiling{ceiling("a", 0, 3)}, []string{"n1 ×1 cpu 8 gpu 4 for g0", "n2 ×1 cpu 8 gpu 8 for g0", "new of a ×1 cpu 8 gpu 4 for g0"}},
		{"which may differ for each kind of pods", []landing.PodShape{asks("nvidia.com/gpu", 1), asks("nvidia.com/gpu", 8)},
			[]landing.Node{gpu("n1"), gpu("n2", announces("nvidia.com/gpu", 8))}, nil, []landing.Ceiling{ceiling("a", 0, 3)},
			[]string{"n1 ×1 cpu 8 gpu 4 for g0", "n2 ×1 cpu 8 gpu 8 for g0+g1", "new of a ×1 cpu 8 gpu 4 same nodes for g0",
				"new of a ×1 cpu 8 gpu 8 same nodes for g1"}},
		{"a declared shape says what a new node has, whatever others have", []landing.PodShape{asks("nvidia.com/gpu", 1)},
			[]landing.Node{inPool("d", gpu("n1")), inPool("d", gpu("n2", announces("nvidia.com/gpu", 16))), declared},
			[]landing.Spec{{Name: "d", MaxNodes: new(int64(4))}}, nil,
			[]string{"n1 ×1 cpu 8 gpu 4 for g0", "n2 ×1 cpu 8 gpu 16 for g0", "new of d ×2 cpu 8 gpu 8 for g0"}},
		{"and that no new node fits", []landing.PodShape{asks("nvidia.com/gpu", 16)},
			[]landing.Node{inPool("d", gpu("n2", announces("nvidia.com/gpu", 16))), declared}, []landing.Spec{{Name: "d", MaxNodes: new(int64(4))}}, nil,
			[]string{"n2 ×1 cpu 8 gpu 16 for g0"}},
		{"cards of the smallest", []landing.PodShape{asks("aliyun.com/gpu-mem", 8)},
			[]landing.Node{cards, inPool("a", gpuNode("m", quantities("aliyun.com/gpu-mem", 48), "ack.node.gpu.schedule=share aliyun.accelerator/nvidia_count=2"))}, nil,
			[]landing.Ceiling{ceiling("a", 0, 3)}, []string{"n ×1 gpu-mem 60 cpu 8 card(15 of 15 ×4) for g0", "m ×1 gpu-mem 48 cpu 8 card(24 of 24 ×2) for g0",
				"new of a ×1 gpu-mem 48 cpu 8 card(15 of 15 ×2) for g0"}},
		{"limits of a NodePool", []landing.PodShape{asks("nvidia.com/gpu", 1), asks("cpu", 1)}, []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{limitedTo("k", "nvidia.com/gpu", 10)}, []string{"k-x ×1 cpu 8 gpu 4 for g0+g1", "any size of k ×? gpu 6 for g0+g1"}},
		{"a NodePool that is full", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{ofKarpenter("k", 4)}, nil,
			[]landing.Ceiling{limitedTo("k", "cpu", 8)}, []string{"k-x ×1 cpu 8 gpu 4 for g0", "any size of k ×0 cpu 0 for g0"}},
		{"a pool of which only the size is known", []landing.PodShape{asks("nvidia.com/gpu", 1)}, []landing.Node{gpu("n1")}, []landing.Spec{{Name: "q", MaxNodes: new(int64(1))}},
			[]landing.Ceiling{ceiling("a", 0, 1)}, []string{"n1 ×1 cpu 8 gpu 4 for g0", "new of a ×0 cpu 8 gpu 4 for g0", "unproven q ×? for g0"}},
		{"a NodePool for devices that Karpenter does not know", []landing.PodShape{asks("aliyun.com/gpu-mem", 1), asks("nvidia.com/gpu", 1)}, nil, nil,
			[]landing.Ceiling{{Group: "k", Source: landing.FromKarpenter, Template: &landing.NodeTemplate{}}}, []string{"any size of k ×? for g1", "unproven k ×? for g0"}},
		{"parts of cards", []landing.PodShape{asks("aliyun.com/gpu-mem", 8)}, []landing.Node{cards}, nil, []landing.Ceiling{ceiling("a", 0, 1)},
			[]string{"n ×1 gpu-mem 60 cpu 8 card(15 of 15 ×4) for g0", "new of a ×0 gpu-mem 60 cpu 8 card(15 of 15 ×4) for g0"}},
		{"what pods leave of each healthy card", []landing.PodShape{asks("aliyun.com/gpu-mem", 8)}, []landing.Node{partly}, nil, []landing.Ceiling{ceiling("a", 0, 1)},
			[]string{"n ×1 gpu-mem 40 cpu 8 card(5 of 15 ×1) card(5 of 15 ×1) card(15 of 15 ×1) for g0", "new of a ×0 gpu-mem 60 cpu 8 card(15 of 15 ×4) for g0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rooms := landing.Rooms(test.nodes, landing.Config{Pools: test.specs}, test.ceilings)
			var exist, shapes []landing.Node
			for _, n := range test.nodes {
				if n.Declared {
					shapes = append(shapes, n)
				} else {
					exist = append(exist, n)
				}
			}
			stock := landing.NodesOf(exist, landing.Pools{Rooms: rooms, Shapes: shapes})
			var kinds []landing.Kind
			for i := range test.shapes {
				kinds = append(kinds, stock.KindOf(fmt.Sprintf("g%d", i), &test.shapes[i]))
			}
			var got []string
			places, _ := stock.Places(kinds)
			for _, place := range places {
				got = append(got, placeText(place))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAShareOfMemoryIsThatOfTheSmallestCardThatHoldsIt has cards of several sizes: KAI gives 2000 MiB of each.
func TestAShareOfMemoryIsThatOfTheSmallestCardThatHoldsIt(t *testing.T) {
	nodes := make([]landing.Node, 3)
	for i, mib := range []string{"46068", "15360", ""} {
		nodes[i] = inPool("a", node("n"+strconv.Itoa(i)))
		nodes[i].Labels = map[string]string{"nvidia.com/gpu.memory": mib}
	}
	for shown, want := range map[int]int64{1: 434, 2: 10_000 / 7, 3: 10_000 / 7} {
		stock := landing.NodesOf(nodes[:shown], landing.Pools{})
		kind := stock.KindOf("g", &landing.PodShape{Share: &sharing.CardShare{Annotation: "gpu-memory", Value: "2000", Cards: 1, MemoryMiB: 2000}})
		if got := kind.Requests["nvidia.com/gpu"]; int64(got) != want {
			t.Errorf("with %d nodes, a pod takes %s of a card, want %d of 10000", shown, got, want)
		}
	}
}

// TestOnlyCardsThatAPodWantsHaveRoomForIt has two cards of 24 GiB, and pods of 12.
func TestOnlyCardsThatAPodWantsHaveRoomForIt(t *testing.T) {
	const register = "GPU-a,10,24576,100,NVIDIA L4,0,true:GPU-b,10,24576,100,NVIDIA A10,0,true:"
	nodes := []landing.Node{inPool("a", node("n1"))}
	read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: map[string]int64{"nvidia.com/gpu": 20},
		Annotations: map[string]string{"hami.io/node-nvidia-register": register}, Pods: []sharing.Pod{}})
	nodes[0].GPUs, nodes[0].Use = &read, &landing.Use{Cards: read.PerCard}
	nodes[0].Allocatable = landing.Quantities{"nvidia.com/gpu": raydemand.Whole(20), "pods": raydemand.Whole(110)}
	stock := landing.NodesOf(nodes, landing.Pools{Rooms: landing.Rooms(nodes, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 1)})})
	for _, test := range []struct {
		key, value string
		want       int64
	}{
		{"other", "x", 4}, {"nvidia.com/use-gputype", "A10", 2}, {"nvidia.com/nouse-gputype", "a10", 2},
		{"nvidia.com/use-gputype", "L4,A10", 4}, {"nvidia.com/use-gpuuuid", "GPU-a", 2},
		{"nvidia.com/use-gpuuuid", "GPU-a,GPU-b", 4}, {"nvidia.com/use-gpuuuid", "GPU-z", 0}, {"nvidia.com/vgpu-mode", "mig", 0},
	} {
		kinds := []landing.Kind{stock.KindOf("g", &landing.PodShape{Choice: sharing.CardChoiceOf(map[string]string{test.key: test.value}),
			Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One, "nvidia.com/gpumem": raydemand.Whole(12000)}})}
		places, _ := stock.Places(kinds)
		if got := landing.New([]landing.Pod{kinds[0].Pod}, places).Empty().Room(0); got != test.want {
			t.Errorf("%s: %s leaves room for %d pods, want %d", test.key, test.value, got, test.want)
		}
	}
}
