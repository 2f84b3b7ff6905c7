package event

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestEventsAreComposedAndNotWritten(t *testing.T) {
	importtest.Only(t, "internal/controller/breaker", "internal/controller/decision", "internal/controller/membership",
		"internal/controller/mode", "internal/controller/observation", "internal/controller/reduction",
		"internal/planner", "pkg/nodepool", "pkg/nodepool/departure", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"context":   "nothing is called here; the loop writes Events",
		"log/slog":  "the loop logs what it emits",
		"k8s.io/":   "the loop records Events through its interface Kube",
		"math/rand": "equal cycles have equal Events",
	})
}
