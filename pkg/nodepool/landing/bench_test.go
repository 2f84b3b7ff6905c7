package landing_test

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// thousandNodes returns 1,000 nodes of eight cards, all with different use, and 20 kinds of pods.
func thousandNodes() ([]landing.Pod, []landing.Place) {
	pods := make([]landing.Pod, 20)
	for i := range pods {
		n := int64(i)
		pods[i] = landing.Pod{Name: fmt.Sprintf("group-%02d", i),
			Requests: landing.Quantities{"cpu": raydemand.Whole(2 + n%5), "memory": raydemand.Whole((4 + n%7) << 30),
				"nvidia.com/gpu": raydemand.Whole(1 + n%2)},
			Cards: &landing.CardRequest{Cards: 1 + n%2, Memory: 1000 * (1 + n%9), Cores: 5 * (n % 6)}}
	}
	places := make([]landing.Place, 1000)
	for i := range places {
		n := int64(i)
		p := &places[i]
		*p = landing.Place{Node: fmt.Sprintf("node-%04d", i), Nodes: of[int64](1), Accepts: names(pods),
			Free: landing.Quantities{"cpu": raydemand.Whole(96 - n%40), "memory": raydemand.Whole(1<<40 - n<<27),
				"nvidia.com/gpu": raydemand.Whole(80 - n%30), "pods": raydemand.Whole(110 - n%50)}}
		for c := range int64(8) {
			left := 81920 - (n*7919+c*104729)%60000
			p.Cards = append(p.Cards, landing.Card{Total: 81920, Memory: &left, Cores: of((n*31 + c*17) % 101), Slots: of(10 - (n+c)%5), Used: true})
		}
	}
	return pods, places
}

// BenchmarkThousandNodes prepares 1,000 nodes with 8 cards each for 20 kinds of pods, and places 2,000 pods.
func BenchmarkThousandNodes(b *testing.B) {
	pods, places := thousandNodes()
	for b.Loop() {
		state := landing.New(pods, places).Empty()
		for i := range 2000 {
			if state.Take(i%len(pods), 1) != 1 {
				b.Fatal("a pod finds no place")
			}
		}
	}
}

// BenchmarkThousandEqualNodes does the same on nodes that are all empty.
func BenchmarkThousandEqualNodes(b *testing.B) {
	pods, places := thousandNodes()
	place := places[0]
	place.Nodes = of[int64](1000)
	for b.Loop() {
		state := landing.New(pods, []landing.Place{place}).Empty()
		for i := range 2000 {
			if state.Take(i%len(pods), 1) != 1 {
				b.Fatal("a pod finds no place")
			}
		}
	}
}

// BenchmarkCopyThousandNodes copies the state of 1,000 nodes of which no two are equal.
func BenchmarkCopyThousandNodes(b *testing.B) {
	pods, places := thousandNodes()
	state, other := landing.New(pods, places).Empty(), &landing.Taken{}
	for b.Loop() {
		other.CopyFrom(state)
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
