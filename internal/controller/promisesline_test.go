package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// TestTheLineOfPromisesIsThatOfAllEntries compares the kept line with one made anew after each drawn change, and checks
// that what a reading was given never changes.
func TestTheLineOfPromisesIsThatOfAllEntries(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 8))
	var registry promises
	given := map[string][]nodepool.Promise{}
	for i := range 2000 {
		name := fmt.Sprint(draw.IntN(8))
		switch draw.IntN(6) {
		case 0:
			registry.Forget(keyOf(name))
		case 1:
			registry.Publish(asks(name, i, 0, waitingCluster), afterStart)
		default:
			registry.Publish(asks(name, i, draw.IntN(4), withPriority(draw.Int32N(2)), podsFrom(draw.IntN(50))), afterStart)
		}
		own := ranked(fmt.Sprint(draw.IntN(10)), draw.Int32N(2))
		if draw.IntN(2) == 0 {
			own.Workers = asks(own.Key.Name, i, 1, podsFrom(draw.IntN(50))).Pods.List()
		}
		got := registry.Before(own, afterStart.Add(keptFor))
		registry.line = nil
		if again := registry.Before(own, afterStart.Add(keptFor)); text(got) != text(again) {
			t.Fatalf("change %d: promises %q, want %q", i, text(got), text(again))
		}
		if slices.ContainsFunc(got, func(p nodepool.Promise) bool { return p.RayCluster == own.Key }) {
			t.Fatalf("change %d: the own promise comes before it: %q", i, text(got))
		}
		for was, promises := range given {
			if text(promises) != was {
				t.Fatalf("change %d: what a reading was given became %q, was %q", i, text(promises), was)
			}
		}
		if i%50 == 0 {
			given[text(got)] = got
		}
	}
	if len(given) < 20 {
		t.Errorf("%d different answers were given, want at least 20: the draws show too little", len(given))
	}
}
