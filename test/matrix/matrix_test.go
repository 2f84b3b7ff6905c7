package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOneReleaseVariesAtATime(t *testing.T) {
	got := combine([]string{"r3", "r2", "r1"}, []string{"o2", "o1"}, []string{"k2", "k1"})
	want := []Combination{
		{"r3", "o2", "k2"},
		{"r2", "o2", "k2"},
		{"r1", "o2", "k2"},
		{"r3", "o1", "k2"},
		{"r3", "o2", "k1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, test := range []struct{ only, want string }{
		{"", "r3 r2 r1 r3 r3"},
		{"o1", "r3"},
		{"r3 o2 k2", "r3"},
		{"r2 k2", "r2"},
	} {
		chosen, err := choose(got, strings.Fields(test.only))
		var rays []string
		for _, c := range chosen {
			rays = append(rays, c.Ray)
		}
		if err != nil || strings.Join(rays, " ") != test.want {
			t.Errorf("ONLY=%q: %v, %v", test.only, chosen, err)
		}
	}
	if chosen, err := choose(got, []string{"r1", "o1"}); err == nil {
		t.Errorf("ONLY with a combination that does not exist: %v", chosen)
	}
}

// A new result replaces the last one of its combination alone, and a combination that no longer exists disappears.
func TestAResultReplacesTheLastOneOfItsCombination(t *testing.T) {
	a, b, gone := Combination{"r2", "o", "k"}, Combination{"r1", "o", "k"}, Combination{"r0", "o", "k"}
	file := filepath.Join(t.TempDir(), "results.json")
	old := []Result{
		{a, "2026-01-01", []Step{{Name: "x", Failed: "why"}}},
		{gone, "2026-01-01", nil},
		{b, "2026-01-02", nil},
	}
	if results, err := load(file); err != nil || results != nil {
		t.Fatalf("no file: %v, %v", results, err)
	}
	if err := save(file, old); err != nil {
		t.Fatal(err)
	}
	kept, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	latest := Result{a, "2026-02-01", []Step{{Name: "x", Seconds: 1.5}}}
	got := merge([]Combination{a, b, {"r9", "o", "k"}}, kept, latest)
	if diff := cmp.Diff([]Result{latest, {b, "2026-01-02", nil}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedStepIsInTheTableWithItsReason(t *testing.T) {
	failed := Result{Combination{"r", "o", "k"}, "2026-01-01", []Step{
		{Name: steps[0].name, Seconds: 2.04}, {Name: steps[1].name, Seconds: 0.09}, {Name: steps[2].name, Failed: "a | b"},
	}}
	lines := strings.Split(table([]Result{failed}), "\n")
	want := `| r | o | k | 2.0 s | under 0.1 s | failed: a \| b |` + strings.Repeat(" not reached |", len(steps)-3) + " 2026-01-01 |"
	if lines[2] != want {
		t.Errorf("%s\nwant %s", lines[2], want)
	}
	complete := Result{Combination: failed.Combination}
	for _, s := range steps {
		complete.Steps = append(complete.Steps, Step{Name: s.name})
	}
	partial := complete
	partial.Steps = complete.Steps[:len(steps)-1]
	if failed.passed() || partial.passed() || !complete.passed() {
		t.Error("only a run of all steps without a failure has passed")
	}
}

func TestOnlyTheTableOfAPageIsReplaced(t *testing.T) {
	page := "# A\n" + tableBegins + "\nold\n" + tableEnds + "\nrest\n"
	once, err := replaced(page, "new\n")
	if err != nil || once != "# A\n"+tableBegins+"\n\nnew\n\n"+tableEnds+"\nrest\n" {
		t.Errorf("%q, %v", once, err)
	}
	if twice, err := replaced(once, "new\n"); err != nil || twice != once {
		t.Errorf("the second time: %q, %v", twice, err)
	}
	if page, err := replaced("no table", ""); err == nil {
		t.Errorf("a page without the lines: %q", page)
	}
}

// The page has the results that are kept, and only of combinations that the dev cluster can run.
func TestThePageHasTheResults(t *testing.T) {
	results, err := load(filepath.Join("..", resultsFile))
	if err != nil || len(results) == 0 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	page, err := os.ReadFile(filepath.Join("..", pageFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := replaced(string(page), table(results))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("docs/versions.md differs from docs/versions.json (make nightly NAME=matrix writes both):\n%s", diff)
	}
	all, err := combinations()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !slices.Contains(all, r.Combination) {
			t.Errorf("the dev cluster does not run %s", r.Combination)
		}
	}
}
