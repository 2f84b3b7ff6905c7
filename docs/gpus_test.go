package docs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGPUsListsAllCodesOfCards(t *testing.T) {
	want := slices.Sorted(maps.Values(constantsOf(t, "pkg/nodepool/sharing/cardfinding.go", "CardCode")))
	if diff := cmp.Diff(want, firstColumn(between(t, "docs/reference/gpus.md", "| finding |", "\n\n"))); len(want) == 0 || diff != "" {
		t.Errorf("codes (-source +docs):\n%s", diff)
	}
}

// The doctor reports most problems of nodes; the page of GPUs has the others.
func TestEveryProblemOfANodeIsDescribed(t *testing.T) {
	text := read(t, "docs/reference/doctor.md") + between(t, "docs/reference/gpus.md", "## Problems", "\n## ")
	for _, code := range constantsOf(t, "pkg/nodepool/sharing/problem.go", "ProblemCode") {
		if !strings.Contains(text, "`"+code+"`") {
			t.Errorf("no page describes %s", code)
		}
	}
}
