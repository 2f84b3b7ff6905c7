package pace

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPausesAreComputed(t *testing.T) {
	importtest.Only(t, "internal/controller/membership", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"context":      "nothing is called here; the loop waits",
		"log/slog":     "a pause is a value",
		"math/rand":    "the jitter is given, so that tests repeat",
		"math/rand/v2": "the jitter is given, so that tests repeat",
	})
}
