package table

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestATableKnowsNothingOfItsContent(t *testing.T) {
	importtest.Only(t, "internal/planner") // for planner.Span, the one way in which lengths of time are written
	importtest.Imports(t, map[string]string{
		"k8s.io/":                "a table is text",
		"github.com/spf13/cobra": "a command passes its output, not itself",
		"net/http":               "what is shown is fetched elsewhere",
	})
}
