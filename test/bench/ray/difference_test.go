package main

import (
	"context"
	"os"
	"testing"
)

func TestEveryDifferenceFromRayThatIsNotForUsHasAKnownCause(t *testing.T) {
	counted, err := duel{startRay(t)}.count(t.Context(), samples(200, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := counted.write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if err := counted.err(t.TempDir()); err != nil {
		t.Error(err)
	}
}

// startRay starts Ray's planner for a test.
func startRay(t *testing.T) *rayPlanner {
	t.Helper()
	python, err := rayPython(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The test's own context ends before its cleanup.
	ray, err := startRayPlanner(context.Background(), python, limitOfRay)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ray.close(); err != nil {
			t.Error(err)
		}
	})
	return ray
}
