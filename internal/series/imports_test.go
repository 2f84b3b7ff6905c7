package series

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestSeriesReadDecisionsAlone(t *testing.T) {
	importtest.Only(t, "internal/planner", "pkg/nodepool", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"k8s.io/":  "a series is numbers over time",
		"net/http": "internal/httpapi serves the series",
	})
}
