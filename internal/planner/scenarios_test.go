package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/planner/scenario"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestScenarios plans every scenario in testdata/scenarios and compares the plan with its "want". With -update it
// rewrites "want". testdata/README.md has the grammar.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no scenario files (%v)", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) { planScenarios(t, name) })
	}
}

func planScenarios(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := scenario.Parse(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	var outcomes [][]string
	for _, s := range file.Scenarios {
		plan := Compute(s.Snapshot, s.Snapshot.Policy)
		outcomes = append(outcomes, scenario.Outcome(&plan))
		if *update {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if diff := cmp.Diff(s.Want, outcomes[len(outcomes)-1]); diff != "" {
				t.Errorf("%s:%d: the plan (-want +got):\n%s", name, s.Line, diff)
			}
		})
	}
	if *update {
		err := os.WriteFile(name, []byte(file.Rewrite(outcomes)), 0o644) //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheTextFormLosesNothingOfARecordedSnapshot writes the JSON snapshots of the repository as scenarios and reads
// them again.
func TestTheTextFormLosesNothingOfARecordedSnapshot(t *testing.T) {
	files, read := []string{}, 0
	for _, pattern := range []string{"testdata/cases/*.json", "../../test/bench/ray/testdata/*.json"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		raw, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := snapshotfile.ReadSnapshot(raw, name)
		_ = raw.Close()
		if err != nil {
			t.Fatal(err)
		}
		if problem := throughText(t, s); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
		read++
	}
	if read < 113 {
		t.Errorf("read %d snapshots, want at least 113", read)
	}
}

func TestTheTextFormLosesNothingOfADrawnSnapshot(t *testing.T) {
	for name, draw := range map[string]func(*rapid.T) Snapshot{
		"plain": plannertest.DrawSnapshot, "owned": plannertest.DrawOwned, "marked": drawMarked, "sliced": drawSliced,
		"pooled": drawPooled, "served": drawServed, "priced": plannertest.DrawPriced,
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			s := draw(t)
			s.Policy = drawCaps(t)
			if problem := throughText(t, s); problem != "" {
				t.Error(problem)
			}
		}))
	}
}

// emptyAsNil takes an empty list or map for none. Resources are exact: a node that says nothing of them is not empty.
var emptyAsNil = cmp.FilterPath(func(p cmp.Path) bool {
	return p.Last().Type() != reflect.TypeFor[raydemand.Bundle]()
}, cmpopts.EquateEmpty())

// throughText compares a snapshot and its plan with those that its text form gives.
func throughText(t rapid.TB, s Snapshot) string {
	text := scenario.Format("drawn", &s, nil)
	file, err := scenario.Parse("drawn.txt", text)
	if err != nil {
		return fmt.Sprintf("%v\n%s", err, text)
	}
	again := file.Scenarios[0].Snapshot
	if diff := cmp.Diff(s, again, emptyAsNil); diff != "" {
		return fmt.Sprintf("the snapshot changes (-before +after):\n%s\n%s", diff, text)
	}
	if diff := cmp.Diff(asJSON(t, Compute(s, s.Policy)), asJSON(t, Compute(again, again.Policy))); diff != "" {
		return fmt.Sprintf("the plan changes (-before +after):\n%s\n%s", diff, text)
	}
	return ""
}
