package planner_test

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// TestScenarios plans every scenario in testdata/scenarios and compares the plan with its "want". With -update it
// rewrites "want". testdata/README.md has the grammar.
func TestScenarios(t *testing.T) {
	for _, name := range scenarioFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) { planScenarios(t, name) })
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no scenario files (%v)", err)
	}
	return files
}

func readScenarios(t *testing.T, name string) *File {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Parse(name, string(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// updates reports whether the flag -update is set.
func updates() bool { return flag.Lookup("update").Value.String() == "true" }

func planScenarios(t *testing.T, name string) {
	file := readScenarios(t, name)
	var outcomes [][]string
	for _, s := range file.Scenarios {
		plan := planner.Compute(s.Snapshot, s.Snapshot.Policy)
		outcomes = append(outcomes, Outcome(&plan))
		if updates() {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if diff := cmp.Diff(s.Want, outcomes[len(outcomes)-1]); diff != "" {
				t.Errorf("%s:%d: the plan (-want +got):\n%s", name, s.Line, diff)
			}
		})
	}
	if updates() {
		err := os.WriteFile(name, []byte(file.Rewrite(outcomes)), 0o644) //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestScenariosAreExplainedAndPrintedAsBefore reads each scenario from its JSON form, as `autoscaler plan` does, and
// compares its plan as JSON, its plan as text, and its explanations with the stored hashes. -update rewrites them.
func TestScenariosAreExplainedAndPrintedAsBefore(t *testing.T) {
	const stored = "testdata/scenarios.sha256"
	var now strings.Builder
	for _, name := range scenarioFiles(t) {
		for _, s := range readScenarios(t, name).Scenarios {
			raw, err := json.Marshal(s.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			snapshot, err := snapshotfile.ReadSnapshot(strings.NewReader(string(raw)), s.Name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&now, "%s#%s", filepath.Base(name), strings.ReplaceAll(s.Name, " ", "-"))
			plan := planner.Compute(snapshot, snapshot.Policy)
			for _, output := range []string{"json", "text"} {
				var text strings.Builder
				if err := printer.WriterOf(output, printer.Look{}, printer.WritePlanText)(&text, plan); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&now, " %.8x", sha256.Sum256([]byte(text.String())))
			}
			fmt.Fprintf(&now, " %.8x\n", sha256.Sum256([]byte(explained(t, snapshot))))
		}
	}
	if updates() {
		if err := os.WriteFile(stored, []byte(now.String()), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(now.String(), "\n")); diff != "" {
		t.Errorf("plan as JSON, plan as text, explanations (-stored +now):\n%s", diff)
	}
}

func explained(t *testing.T, s planner.Snapshot) string {
	t.Helper()
	return plannertest.Explanations(t, &s, func(q planner.Question) (planner.Explanation, error) {
		return planner.Explain(s, s.Policy, q)
	})
}
