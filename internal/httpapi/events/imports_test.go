package events

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestEventsDoNotDecideWhoMaySeeThem(t *testing.T) {
	importtest.Only(t, "internal/httpapi/answer", "internal/httpapi/apiv1", "internal/httpapi/clusterview",
		"internal/httpapi/limits", "internal/httpapi/problem", "internal/planner", "pkg/nodepool", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"internal/access":        "the server authenticates callers and passes a function that reviews their rights",
		"internal/httpapi/guard": "the server authenticates callers and passes a function that reviews their rights",
	})
}
