package landing_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// drawPods draws kinds of pods that request CPU and devices, and perhaps parts of cards.
func drawPods(t *rapid.T, most int) []landing.Pod {
	pods := make([]landing.Pod, rapid.IntRange(1, most).Draw(t, "kinds"))
	for i := range pods {
		pods[i] = landing.Pod{Name: string(rune('a' + i)), Requests: landing.Quantities{}}
		for _, name := range []string{"cpu", "nvidia.com/gpu"} {
			if n := rapid.Int64Range(0, 4).Draw(t, name); n > 0 {
				pods[i].Requests[name] = raydemand.Whole(n)
			}
		}
		if rapid.Bool().Draw(t, "parts") {
			pods[i].Cards = drawRequest(t)
		}
	}
	return pods
}

func drawRequest(t *rapid.T) *landing.CardRequest {
	request := &landing.CardRequest{Cards: rapid.Int64Range(0, 3).Draw(t, "cards")}
	switch rapid.IntRange(0, 2).Draw(t, "of memory") {
	case 0:
		request.Memory = rapid.Int64Range(1, 9).Draw(t, "memory")
	case 1:
		request.MemoryPercent = rapid.SampledFrom([]int64{25, 33, 50, 60, 100}).Draw(t, "percent")
	}
	if rapid.Bool().Draw(t, "of cores") {
		request.Cores = rapid.SampledFrom([]int64{10, 40, 55, 60, 100}).Draw(t, "cores")
	}
	return request
}

func drawPlaces(t *rapid.T, pods []landing.Pod, orders ...string) []landing.Place {
	places := make([]landing.Place, rapid.IntRange(1, 2).Draw(t, "places"))
	for i := range places {
		p := &places[i]
		p.Nodes = of(rapid.Int64Range(0, 2).Draw(t, "nodes"))
		p.New = rapid.Bool().Draw(t, "new")
		p.Free = free("cpu", rapid.IntRange(0, 8).Draw(t, "cpu"), "nvidia.com/gpu", rapid.IntRange(0, 8).Draw(t, "gpus"))
		p.CardOrder = rapid.SampledFrom(orders).Draw(t, "order")
		for range rapid.IntRange(0, 3).Draw(t, "runs of cards") {
			p.Cards = append(p.Cards, drawCard(t))
		}
		for _, pod := range pods {
			if rapid.IntRange(0, 4).Draw(t, "accepts") > 0 {
				p.Accepts = append(p.Accepts, pod.Name)
			}
		}
	}
	return places
}

func drawCard(t *rapid.T) landing.Card {
	card := landing.Card{Count: rapid.Int64Range(0, 2).Draw(t, "count"), Total: rapid.Int64Range(8, 16).Draw(t, "total")}
	card.Memory = of(rapid.Int64Range(0, card.Total).Draw(t, "left"))
	if rapid.Bool().Draw(t, "with cores") {
		card.Cores = of(rapid.Int64Range(0, 10).Draw(t, "cores left") * 10)
	}
	if rapid.Bool().Draw(t, "with slots") {
		card.Slots = of(rapid.Int64Range(0, 3).Draw(t, "slots"))
	}
	card.Used = *card.Memory < card.Total
	return card
}

func TestWhatIsPlacedCanBeAssignedToNodesAndCards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawPods(t, 3)
		places := drawPlaces(t, pods, "", sharing.FullestCard, sharing.EmptiestCard, sharing.LastCard)
		state := landing.New(pods, places).Empty()
		placed, total := make([]int64, len(pods)), int64(0)
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			pod := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
			n := min(rapid.Int64Range(1, 4).Draw(t, "pods"), 7-total)
			room := state.Room(pod)
			got := state.Take(pod, n)
			if got != min(room, n) {
				t.Fatalf("placed %d of %d pods where room is %d", got, n, room)
			}
			placed[pod] += got
			total += got
		}
		if !assignable(machines(places, 0), pods, placed) {
			t.Fatalf("no assignment of %v pods exists", placed)
		}
	})
}

func TestRoomForOneKindIsTheTrueMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawPods(t, 1)
		orders := []string{"", sharing.EmptiestCard}
		if pods[0].Cards == nil || pods[0].Cards.Cards <= 1 {
			orders = append(orders, sharing.FullestCard, sharing.LastCard) // these waste cards of pods on several
		}
		places := drawPlaces(t, pods, orders...)
		state := landing.New(pods, places).Empty()
		room, most := state.Room(0), int64(8)
		if room <= most && !assignable(machines(places, 0), pods, []int64{room}) {
			t.Fatalf("no assignment of %d pods exists", room)
		}
		if room < most && assignable(machines(places, 0), pods, []int64{room + 1}) {
			t.Fatalf("one more than %d pods could be assigned", room)
		}
		if got := state.Take(0, most); got != min(room, most) {
			t.Fatalf("placed %d where room is %d", got, room)
		}
	})
}

// drawRules draws constraints on where pods may be beside others, at most so many for each kind.
func drawRules(t *rapid.T, pods []landing.Pod, most int) {
	for i := range pods {
		for range rapid.IntRange(0, most).Draw(t, "rules") {
			selected := rapid.SliceOfDistinct(rapid.SampledFrom(append(names(pods), "other")), rapid.ID).Draw(t, "selected")
			pods[i].Apart = append(pods[i].Apart, selected...)
		}
	}
}

// drawHolding draws places of small nodes with pods on them.
func drawHolding(t *rapid.T, pods []landing.Pod, allowNew bool) []landing.Place {
	places := make([]landing.Place, rapid.IntRange(1, 3).Draw(t, "places"))
	for i := range places {
		p := &places[i]
		p.Nodes = of(rapid.Int64Range(0, 2).Draw(t, "nodes"))
		p.Free = free("cpu", rapid.IntRange(0, 3).Draw(t, "cpu"))
		p.New = allowNew && rapid.IntRange(0, 2).Draw(t, "new") == 0
		for _, pod := range pods {
			if rapid.IntRange(0, 5).Draw(t, "accepts") > 0 {
				p.Accepts = append(p.Accepts, pod.Name)
			}
			if !p.New && rapid.IntRange(0, 3).Draw(t, "holds") == 0 {
				p.Holds = maps.Clone(p.Holds)
				if p.Holds == nil {
					p.Holds = map[string]int64{}
				}
				p.Holds[pod.Name] = 1
			}
		}
	}
	return places
}

func drawKinds(t *rapid.T, most int) []landing.Pod {
	pods := []landing.Pod{{Name: "a", Requests: free("cpu", 1)}, {Name: "b", Requests: free("cpu", 1)}}
	return pods[:rapid.IntRange(1, most).Draw(t, "kinds")]
}

func TestWhatIsPlacedObeysTheRulesBetweenPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawKinds(t, 2)
		drawRules(t, pods, 2)
		places := drawHolding(t, pods, true)
		state := landing.New(pods, places).Empty()
		var order []int
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			pod := rapid.IntRange(0, len(pods)-1).Draw(t, "pod")
			n := min(rapid.Int64Range(1, 3).Draw(t, "pods"), 6-int64(len(order)))
			order = append(order, slices.Repeat([]int{pod}, int(state.Take(pod, n)))...)
		}
		if !inOrder(machines(places, 0), pods, order) {
			t.Fatalf("no scheduler could place %v", order)
		}
	})
}

func TestRoomUnderOneRuleIsTheTrueMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawKinds(t, 1)
		drawRules(t, pods, 1)
		places := drawHolding(t, pods, false)
		state := landing.New(pods, places).Empty()
		room := state.Room(0)
		if room < 6 && inOrder(machines(places, 0), pods, make([]int, room+1)) {
			t.Fatalf("one more than %d pods could be placed", room)
		}
		for n := range room {
			trial := landing.New(pods, places).Empty()
			if got := trial.Take(0, n); got != n {
				t.Fatalf("placed %d of %d, where room is %d", got, n, room)
			}
		}
		if room <= 6 && !inOrder(machines(places, 0), pods, make([]int, room)) {
			t.Fatalf("%d pods cannot be placed", room)
		}
	})
}
