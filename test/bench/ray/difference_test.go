package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/snapshotfile"
)

// page describes each known cause.
const page = "../../../docs/design/0003-differences-from-ray.md"

func TestEveryDifferenceFromRayThatIsNotForUsHasAKnownCause(t *testing.T) {
	counted, err := duel{startRay(t)}.count(t.Context(), samples(300, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := counted.write(t.Output()); err != nil {
		t.Fatal(err)
	}
	if err := counted.err(openDir()); err != nil {
		t.Error(err)
	}
}

func TestEachKnownCauseIsTheCauseInItsExample(t *testing.T) {
	d := duel{startRay(t)}
	for _, e := range explanations {
		t.Run(e.name, func(t *testing.T) {
			file, err := os.Open(filepath.Join("testdata", e.name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			s, err := snapshotfile.ReadSnapshot(file, file.Name())
			if err != nil {
				t.Fatal(err)
			}
			findings, err := d.trace(s)
			if err != nil {
				t.Fatal(err)
			}
			findings = slices.DeleteFunc(findings, func(f finding) bool { return f.aspect.better() })
			if len(findings) == 0 {
				t.Fatal("no difference")
			}
			for _, f := range findings {
				if diff := cmp.Diff([]string{e.name}, f.causes); diff != "" {
					t.Errorf("Heliostat %s: %s: causes (-want +got):\n%s", f.aspect, f.detail, diff)
				}
			}
		})
	}
}

func TestTheDesignPageListsEachKnownCauseAndNoOther(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var described, known []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		described = append(described, row[1])
	}
	for _, e := range explanations {
		known = append(known, e.name)
	}
	slices.Sort(described)
	slices.Sort(known)
	if diff := cmp.Diff(known, described); diff != "" {
		t.Errorf("causes (-known +described):\n%s", diff)
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
