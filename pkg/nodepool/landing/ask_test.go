package landing_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestKindsOfOneClassAreComparedOnceWithTheSameResult compares the places of drawn pods, some of them equal, with those
// of the same pods whose classes are unknown.
func TestKindsOfOneClassAreComparedOnceWithTheSameResult(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	shared := 0
	for range 300 {
		var nodes []landing.Node
		for i := range 1 + draw.IntN(12) {
			n := node(fmt.Sprint("n", i), announces("nvidia.com/gpu", draw.Int64N(9)), labelled("zone", fmt.Sprint(draw.IntN(2))))
			n.Pool = fmt.Sprint("p", draw.IntN(2))
			if draw.IntN(2) == 0 {
				n.Use = &landing.Use{Requests: landing.Quantities{"cpu": raydemand.Whole(draw.Int64N(8))}}
			}
			if draw.IntN(5) == 0 {
				isNotReady(&n)
			}
			nodes = append(nodes, n)
		}
		stock := landing.NodesOf(nodes, landing.Pools{Rooms: []landing.Room{{Pool: "p0", MayAddNodes: new(draw.Int64N(3))}, {Pool: "p1"}}})
		shapes, kinds := make([]landing.PodShape, 1+draw.IntN(6)), []landing.Kind{}
		for i := range shapes {
			shapes[i] = asking(map[string]int64{"cpu": 1 + draw.Int64N(2), "nvidia.com/gpu": draw.Int64N(2)})
			if draw.IntN(2) == 0 {
				shapes[i].Selector = map[string]string{"zone": fmt.Sprint(draw.IntN(2))}
			}
			if draw.IntN(4) == 0 {
				shapes[i].Neighbors.Spread = []landing.SpreadTerm{{MaxSkew: 1, HonorsTaints: draw.IntN(2) == 0}}
			}
			kinds = append(kinds, stock.KindOf(fmt.Sprint("g", i), &shapes[i]))
		}
		own := landing.OnNodes{}
		own.Add("n0", "g0")
		places, pods := stock.Places(kinds, own)
		seen := map[landing.Key]bool{}
		for i := range kinds {
			kinds[i].Class = landing.KeyOf(&shapes[i])
			if seen[kinds[i].Class] {
				shared++
			}
			seen[kinds[i].Class] = true
		}
		again, podsAgain := stock.Places(kinds, own)
		if !reflect.DeepEqual(places, again) || !reflect.DeepEqual(pods, podsAgain) {
			t.Fatalf("nodes %+v, pods %+v:\n%+v\nwithout classes %+v", nodes, pods, again, places)
		}
	}
	if shared < 100 {
		t.Errorf("only %d pods were equal to others", shared)
	}
}
