package docs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

func TestDeparturesListsAllSignsAndTheirTaints(t *testing.T) {
	table := between(t, "docs/reference/departures.md", "| sign |", "\n\n")
	want := slices.Sorted(maps.Values(constantsOf(t, "pkg/nodepool/departure/notice.go", "Sign")))
	if diff := cmp.Diff(want, firstColumn(table)); len(want) == 0 || diff != "" {
		t.Errorf("signs (-source +docs):\n%s", diff)
	}
	for _, taint := range departure.Taints {
		row := slices.IndexFunc(strings.Split(table, "\n"), func(line string) bool {
			certain := "| yes |"
			if !departure.OfTaint(taint.Key, "").Certain {
				certain = "| warning |"
			}
			return strings.Contains(line, "`"+taint.Key+"`") && strings.HasPrefix(line, "| `"+string(taint.Sign)+"`") &&
				strings.Contains(line, certain)
		})
		if row < 0 {
			t.Errorf("no row of sign %s names taint %s as it is", taint.Sign, taint.Key)
		}
	}
}
