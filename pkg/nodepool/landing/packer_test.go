package landing_test

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func of[T any](v T) *T { return &v }

// free returns quantities from pairs of names and whole amounts.
func free(pairs ...any) landing.Quantities {
	q := landing.Quantities{}
	for i := 0; i < len(pairs); i += 2 {
		q[pairs[i].(string)] = raydemand.Whole(int64(pairs[i+1].(int)))
	}
	return q
}

// cards returns so many equal empty cards.
func cards(count int, memory int64) []landing.Card {
	return []landing.Card{{Count: int64(count), Total: memory, Memory: &memory, Cores: of(int64(100))}}
}

func names(pods []landing.Pod) []string {
	list := make([]string, len(pods))
	for i := range pods {
		list[i] = pods[i].Name
	}
	return list
}

// onAll lets every place accept all pods.
func onAll(pods []landing.Pod, places ...landing.Place) *landing.Packer {
	for i := range places {
		if places[i].Accepts == nil {
			places[i].Accepts = names(pods)
		}
	}
	return landing.New(pods, places)
}

func memoryOf(card int, units int) landing.Pod {
	return landing.Pod{Name: "m", Requests: free("aliyun.com/gpu-mem", units*card),
		Cards: &landing.CardRequest{Cards: int64(card), Memory: int64(units)}}
}

func named(name string, pod landing.Pod) landing.Pod {
	pod.Name = name
	return pod
}

// add is a number of pods of one kind, and how many of them find a place.
type add struct{ pod, n, placed int }

func TestPodsOfSeveralKindsShareNodesAndCards(t *testing.T) {
	ack := landing.Place{Nodes: of[int64](1), Free: free("aliyun.com/gpu-mem", 60, "aliyun.com/gpu-core.percentage", 400), Cards: cards(4, 15)}
	spread := ack
	spread.CardOrder = sharing.EmptiestCard
	packed := ack
	packed.CardOrder = sharing.FullestCard
	volcano := ack
	volcano.CardOrder, volcano.Cards = sharing.LastCard, slices.Concat(cards(1, 10), cards(2, 15))
	cores := func(percent int) landing.Pod {
		return landing.Pod{Name: "c", Requests: free("aliyun.com/gpu-mem", 1, "aliyun.com/gpu-core.percentage", percent),
			Cards: &landing.CardRequest{Memory: 1, Cores: int64(percent)}}
	}
	gpus := func(n int) landing.Pod { return landing.Pod{Name: "g", Requests: free("nvidia.com/gpu", n)} }
	of8 := func(nodes int64) landing.Place {
		return landing.Place{Nodes: &nodes, Free: free("nvidia.com/gpu", 8)}
	}
	percent := func(p int64) landing.Pod {
		return landing.Pod{Name: "p", Requests: free("nvidia.com/gpu", 1), Cards: &landing.CardRequest{MemoryPercent: p}}
	}
	hami := landing.Place{Nodes: of[int64](1), Free: free("nvidia.com/gpu", 20), Cards: cards(2, 16376)}
	cut := hami // an A100 with 80 GB, in mode mig
	cut.Cards = []landing.Card{{Total: 81920, Memory: of[int64](81920), Cores: of[int64](100),
		Parts: []landing.Part{{Memory: 9728, Cores: 14}, {Memory: 19968, Cores: 28}, {Memory: 40192, Cores: 42}, {Memory: 80384, Cores: 100}}}}
	mig := func(name string, mib int64) landing.Pod {
		return landing.Pod{Name: name, Requests: free("nvidia.com/gpu", 1), Cards: &landing.CardRequest{Memory: mib}}
	}
	picky := hami
	picky.Cards = []landing.Card{{Total: 1000, Memory: of[int64](1000), Refuses: []string{"a"}}, {Total: 1000, Memory: of[int64](1000)}}
	slots := hami
	slots.Cards = []landing.Card{{Count: 2, Total: 1000, Memory: of[int64](1000), Slots: of[int64](3)}}
	tests := []struct {
		name   string
		pods   []landing.Pod
		places []landing.Place
		adds   []add
	}{
		{"8 and 9 GiB on four cards of 15", []landing.Pod{named("a", memoryOf(1, 8)), named("b", memoryOf(1, 9))}, []landing.Place{ack},
			[]add{{0, 10, 4}, {1, 10, 0}}},
		{"one after the other", []landing.Pod{named("a", memoryOf(1, 8)), named("b", memoryOf(1, 9))}, []landing.Place{ack},
			[]add{{0, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 2, 1}, {0, 1, 0}}},
		{"8 and 7 GiB share a card", []landing.Pod{named("a", memoryOf(1, 8)), named("b", memoryOf(1, 7))}, []landing.Place{ack},
			[]add{{0, 10, 4}, {1, 10, 4}}},
		{"60 and 55 percent of a card's cores", []landing.Pod{named("a", cores(60)), named("b", cores(55))}, []landing.Place{ack},
			[]add{{0, 2, 2}, {1, 9, 2}}},
		{"60 and 40 percent", []landing.Pod{named("a", cores(60)), named("b", cores(40))}, []landing.Place{ack},
			[]add{{0, 2, 2}, {1, 9, 6}}},
		{"5 and 3 GPUs on two nodes of 8", []landing.Pod{named("a", gpus(5)), named("b", gpus(3))}, []landing.Place{of8(2)},
			[]add{{0, 9, 2}, {1, 9, 2}}},
		{"5, 5 and 3 GPUs", []landing.Pod{named("a", gpus(5)), named("b", gpus(3))}, []landing.Place{of8(2)},
			[]add{{0, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 9, 1}}},
		{"half of the memory of two cards", []landing.Pod{percent(50)}, []landing.Place{hami}, []add{{0, 20, 4}}},
		{"half and a whole", []landing.Pod{named("a", percent(50)), named("b", percent(100))}, []landing.Place{hami}, []add{{0, 1, 1}, {1, 9, 1}, {0, 9, 1}}},
		{"a card takes three shares", []landing.Pod{percent(10)}, []landing.Place{slots}, []add{{0, 20, 6}}},
		{"12000 MiB take 2g.20gb, three on a card", []landing.Pod{mig("a", 12000)}, []landing.Place{cut}, []add{{0, 9, 3}}},
		{"8000 MiB take 1g.10gb, seven on a card", []landing.Pod{mig("a", 8000)}, []landing.Place{cut}, []add{{0, 9, 7}}},
		{"two halves leave no place for a seventh", []landing.Pod{mig("a", 24000), mig("b", 8000)}, []landing.Place{cut}, []add{{0, 9, 2}, {1, 9, 0}}},
		{"a half leaves four places for sevenths", []landing.Pod{mig("a", 24000), mig("b", 8000)}, []landing.Place{cut}, []add{{0, 1, 1}, {1, 9, 4}}},
		{"more memory than any part has", []landing.Pod{mig("a", 81000)}, []landing.Place{cut}, []add{{0, 9, 0}}},
		{"all of the memory takes the largest part", []landing.Pod{percent(100)}, []landing.Place{cut}, []add{{0, 9, 1}}},
		{"a card that refuses a kind of pods", []landing.Pod{named("a", percent(50)), named("b", percent(50))}, []landing.Place{picky}, []add{{0, 9, 2}, {1, 9, 2}}},
		{"60 percent on eight cards", []landing.Pod{{Name: "k", Requests: free("koordinator.sh/gpu-core", 60),
			Cards: &landing.CardRequest{MemoryPercent: 60, Cores: 60}}},
			[]landing.Place{{Nodes: of[int64](1), Free: free("koordinator.sh/gpu-core", 800), Cards: cards(8, 100)}}, []add{{0, 20, 8}}},
		{"binpack keeps whole cards", []landing.Pod{named("a", memoryOf(1, 5)), named("b", memoryOf(1, 15))}, []landing.Place{ack},
			[]add{{0, 1, 1}, {0, 2, 2}, {1, 9, 3}}},
		{"spread uses a card each", []landing.Pod{named("a", memoryOf(1, 5)), named("b", memoryOf(1, 15))}, []landing.Place{spread},
			[]add{{0, 1, 1}, {0, 2, 2}, {1, 9, 1}}},
		{"Volcano takes the last card that fits", []landing.Pod{named("a", memoryOf(1, 5)), named("b", memoryOf(1, 15)), named("c", memoryOf(1, 10))}, []landing.Place{volcano},
			[]add{{0, 1, 1}, {1, 9, 1}, {2, 9, 2}}},
		{"20 GiB over two cards", []landing.Pod{memoryOf(2, 10)}, []landing.Place{ack}, []add{{0, 9, 2}}},
		{"over two cards, beside what fits on one", []landing.Pod{named("a", memoryOf(2, 5)), named("b", memoryOf(1, 15))}, []landing.Place{packed},
			[]add{{0, 3, 3}, {1, 9, 2}}},
		{"all cores need a card for themselves", []landing.Pod{named("a", cores(100)), named("b", cores(10))}, []landing.Place{ack},
			[]add{{1, 1, 1}, {0, 9, 3}}},
		{"CPU goes where no GPU is, if it can", []landing.Pod{named("a", gpus(8)), {Name: "b", Requests: free("cpu", 1)}},
			[]landing.Place{{Nodes: of[int64](1), Free: free("cpu", 4, "nvidia.com/gpu", 8)}, {Nodes: of[int64](1), Free: free("cpu", 4)}},
			[]add{{1, 4, 4}, {0, 2, 1}, {1, 9, 4}}},
		{"small pods leave room for large ones", []landing.Pod{named("a", gpus(1)), named("b", gpus(8))},
			[]landing.Place{{Nodes: of[int64](1), Free: free("nvidia.com/gpu", 8)}, {Nodes: of[int64](2), Free: free("nvidia.com/gpu", 2)}},
			[]add{{0, 1, 1}, {0, 3, 3}, {1, 1, 1}}},
		{"existing nodes before new ones", []landing.Pod{gpus(4)}, []landing.Place{{Nodes: of[int64](1), New: true, Free: free("nvidia.com/gpu", 4)}, of8(1)},
			[]add{{0, 2, 2}, {0, 9, 1}}},
		{"pods on a node are counted", []landing.Pod{{Name: "a", Requests: free("cpu", 1)}},
			[]landing.Place{{Nodes: of[int64](2), Free: free("cpu", 100, "pods", 3)}}, []add{{0, 99, 6}}},
		{"a resource that is not there", []landing.Pod{gpus(1)}, []landing.Place{{Nodes: of[int64](2), Free: free("cpu", 100)}}, []add{{0, 9, 0}}},
		{"nodes of any size share a limit", []landing.Pod{named("a", gpus(3)), {Name: "b", Requests: free("cpu", 2)}},
			[]landing.Place{{AnySize: true, New: true, Free: free("nvidia.com/gpu", 7)}}, []add{{0, 9, 2}, {1, 1000, 1000}}},
		{"a full pool adds no nodes", []landing.Pod{gpus(1)}, []landing.Place{{Nodes: of[int64](0), AnySize: true, Free: free()}}, []add{{0, 9, 0}}},
		{"a pool without a known bound", []landing.Pod{gpus(3)}, []landing.Place{{New: true, Free: free("nvidia.com/gpu", 8)}}, []add{{0, 5000, 5000}}},
		{"nodes accept pods by name", []landing.Pod{gpus(1)}, []landing.Place{{Nodes: of[int64](1), Free: free("nvidia.com/gpu", 8), Accepts: []string{"other"}}}, []add{{0, 9, 0}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			state := onAll(test.pods, test.places...).Empty()
			for i, a := range test.adds {
				room := state.Room(a.pod)
				if got := state.Take(a.pod, int64(a.n)); got != int64(a.placed) || got != min(room, int64(a.n)) {
					t.Errorf("step %d: placed %d of %d pods %s, want %d; room was %d", i, got, a.n, test.pods[a.pod].Name, a.placed, room)
				}
			}
		})
	}
}

func TestRoomWithoutABoundIsUnbounded(t *testing.T) {
	pods := []landing.Pod{{Name: "a", Requests: free("cpu", 1)}, {Name: "b", Requests: free("nvidia.com/gpu", 1)}}
	state := onAll(pods, landing.Place{New: true, Free: free("cpu", 8)}, landing.Place{Nodes: of[int64](2), Free: free("nvidia.com/gpu", 4)}).Empty()
	state.Take(0, 100)
	if got := [2]int64{state.Room(0), state.Room(1)}; got != [2]int64{landing.Unbounded, 8} {
		t.Errorf("room for %v", got)
	}
}

func TestACopyOfAStateIsItsOwn(t *testing.T) {
	pods := []landing.Pod{{Name: "a", Requests: free("cpu", 1)}}
	packer := onAll(pods, landing.Place{Nodes: of[int64](2), Free: free("cpu", 8)})
	first, second := packer.Empty(), packer.Empty()
	first.Take(0, 5)
	second.CopyFrom(first)
	second.Take(0, 5)
	if got := [3]int64{first.Room(0), second.Room(0), packer.Empty().Room(0)}; got != [3]int64{11, 6, 16} {
		t.Errorf("rooms %v", got)
	}
}

// TestANewNodeCountsOnce has new nodes of which pods of one kind are known to find four GPUs and those of another eight.
func TestANewNodeCountsOnce(t *testing.T) {
	pods := []landing.Pod{{Name: "small", Requests: free("gpu", 1)}, {Name: "large", Requests: free("gpu", 8)}}
	packer := landing.New(pods, []landing.Place{
		{Pool: "p", New: true, SameNodes: true, Nodes: of[int64](3), Free: free("gpu", 4), Accepts: []string{"small"}},
		{Pool: "p", New: true, SameNodes: true, Nodes: of[int64](3), Free: free("gpu", 8), Accepts: []string{"large"}},
		{Pool: "q", New: true, SameNodes: true, Nodes: of[int64](1), Free: free("gpu", 8), Accepts: []string{"large"}},
	})
	for _, order := range [][]add{
		{{0, 9, 9}, {1, 9, 1}, {0, 9, 3}},
		{{1, 3, 3}, {0, 20, 0}},
		{{1, 9, 4}, {0, 9, 0}},
		{{0, 20, 12}, {1, 9, 1}},
	} {
		state := packer.Empty()
		for _, a := range order {
			room := state.Room(a.pod)
			if placed := state.Take(a.pod, int64(a.n)); placed != int64(a.placed) || placed != min(room, int64(a.n)) {
				t.Errorf("%v: %d of %d pods of %s have a place of %d, want %d", order, placed, a.n, pods[a.pod].Name, room, a.placed)
			}
		}
	}
}

// TestTheSamePodsOnTheSameNodesAreComputedOnce places pods again on a copy of the state, as a plan does hundreds of
// times.
func TestTheSamePodsOnTheSameNodesAreComputedOnce(t *testing.T) {
	pods := []landing.Pod{{Name: "a", Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}}
	var places []landing.Place
	for i := range 100 {
		free := landing.Quantities{"nvidia.com/gpu": raydemand.Whole(8), "cpu": raydemand.Whole(int64(i))}
		places = append(places, landing.Place{Nodes: new(int64(1)), Free: free, Accepts: []string{"a"}})
	}
	var on landing.Taken
	empty := landing.New(pods, places).Empty()
	allocated := testing.AllocsPerRun(10, func() {
		if on.CopyFrom(empty); on.Take(0, 800) != 800 {
			t.Fatal("not all pods have a place")
		}
	})
	if allocated > 20 {
		t.Errorf("%.0f allocations for 100 nodes that have been filled before", allocated)
	}
}
