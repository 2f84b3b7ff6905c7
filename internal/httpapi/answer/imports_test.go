package answer

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAnswersDecideNothing(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/httpapi/apiv1", "internal/httpapi/problem", "pkg/nodepool")
	importtest.Imports(t, map[string]string{
		"internal/planner": "an answer is a value; handlers make it",
	})
}
