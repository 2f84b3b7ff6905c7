package backoff

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPausesAreComputed(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"context":      "nothing is called here; the loop waits",
		"log/slog":     "a pause is a value",
		"math/rand/v2": "pauses after failures repeat exactly",
	})
}
