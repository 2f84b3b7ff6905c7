package place

import (
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestGangsThatAskForTheSameAreOfOneKind, and such that only have the same sums are not, so that few are compared.
func TestGangsThatAskForTheSameAreOfOneKind(t *testing.T) {
	gang := func(cpus ...raydemand.Amount) *raydemand.Gang {
		g := &raydemand.Gang{Strategy: raydemand.Pack}
		for _, n := range cpus {
			g.Bundles = append(g.Bundles, raydemand.Bundle{"CPU": n, "GPU": 10_000 - n, "memory": 1})
		}
		return g
	}
	same := gang(1, 2, 3)
	for range 20 { // the order of a map is random
		if gangKindOf(gang(1, 2, 3)) != gangKindOf(same) {
			t.Fatal("two equal gangs are of different kinds")
		}
	}
	for _, other := range []*raydemand.Gang{gang(1, 3, 2), gang(1, 1, 4), gang(0, 2, 4)} {
		if gangKindOf(other) == gangKindOf(same) {
			t.Errorf("%v and %v are of one kind", other.Bundles, same.Bundles)
		}
	}
}
