package fleet

import (
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestKindsOfDemandShareAPlan: together they take no more than one of them could alone, none less than the least, and
// one that needs less than its part gets all of it.
func TestKindsOfDemandShareAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.IntRange(0, 30_000)
		r := New(&model.Snapshot{})
		r.Limit(rapid.Int64Range(1, 100_000_000).Draw(t, "work"), 0)
		shapes, gangs := number.Draw(t, "shapes"), number.Draw(t, "gangs")
		calls := []int{number.Draw(t, "within Ray"), number.Draw(t, "over REST")}
		alone := []int{r.MaxShapes(), r.MostOfCall(0), r.MostOfCall(0), r.MaxGangs()}
		r.Divide(shapes, calls, gangs)
		shared := []int{r.MaxShapes(), r.MostOfCall(0), r.MostOfCall(0), r.MaxGangs()}
		taken, rounding := 0.0, 0.0
		for i, demand := range []int{shapes, calls[0], calls[1], gangs} {
			took := min(demand, shared[i])
			taken += float64(took) / float64(alone[i])
			rounding += leastTaken/float64(alone[i]) + 0.01
			if shared[i] > alone[i] || shared[i] < min(leastTaken, alone[i]) {
				t.Errorf("kind %d: %d of %d, want at least %d", i, shared[i], alone[i], leastTaken)
			}
			if 5*demand < alone[i] && took < demand {
				t.Errorf("kind %d: %d of %d although a quarter of a plan has room for it", i, took, demand)
			}
		}
		if taken > 1+rounding {
			t.Errorf("together they take %g of a plan", taken)
		}
		onRing := func(demand, most int) float64 { return min(float64(most)/float64(max(demand, 1)), 1) }
		if a, b := onRing(shapes, shared[0]), onRing(gangs, shared[3]); a < 1 && b < 1 && min(shared[0], shared[3]) > 10*leastTaken &&
			(a > 1.3*b || b > 1.3*a) {
			t.Errorf("shapes come %g of the way around the ring, and gangs %g", a, b)
		}
	})
}

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
