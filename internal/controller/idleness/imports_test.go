package idleness_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestIdlenessCallsNobody(t *testing.T) {
	importtest.Only(t, "internal/controller/observation", "internal/planner", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/raydemand")
	importtest.Imports(t, map[string]string{"context": "it decides from values"})
}
