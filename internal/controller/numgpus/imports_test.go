package numgpus

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestNumbersOfGPUsAreComparedAndNotWritten(t *testing.T) {
	importtest.Only(t, "internal/controller/membership", "internal/controller/observation", "pkg/nodepool", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"context":  "the loop makes the calls",
		"log/slog": "the loop logs",
	})
}
