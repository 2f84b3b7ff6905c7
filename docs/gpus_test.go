package docs

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGPUsListsAllCodesOfNodesAndCards(t *testing.T) {
	for typed, c := range map[string]struct{ source, from, until string }{
		"ProblemCode": {"pkg/nodepool/nodegpu/problem.go", "## Problems", "\n## "},
		"CardCode":    {"pkg/nodepool/nodegpu/cardfinding.go", "| finding |", "\n\n"},
	} {
		want := slices.Sorted(maps.Values(constantsOf(t, c.source, typed)))
		if diff := cmp.Diff(want, firstColumn(between(t, "docs/reference/gpus.md", c.from, c.until))); len(want) == 0 || diff != "" {
			t.Errorf("codes of type %s (-source +docs):\n%s", typed, diff)
		}
	}
}
