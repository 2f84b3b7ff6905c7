package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
