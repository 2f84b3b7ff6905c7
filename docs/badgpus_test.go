package docs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestBadGPUsListsAllSigns(t *testing.T) {
	var want []string
	for _, row := range sharing.BadGPUSigns {
		sign := row.Name
		if row.Bad != "" {
			sign += "=" + row.Bad
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %v | %s |", sign, row.Kind, row.Severity, row.Source))
	}
	table := between(t, "docs/reference/bad-gpus.md", "| sign |", "\n\n")
	if diff := cmp.Diff(want, strings.Split(table, "\n")[2:]); diff != "" {
		t.Errorf("signs (-source +docs):\n%s", diff)
	}
}
