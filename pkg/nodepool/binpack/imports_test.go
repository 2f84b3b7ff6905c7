package binpack_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPlacesAndPodsAreAllThatCounts(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/pools": "a place says how many nodes there can be",
		"internal/planner/":  "the planner decides which pods are worth placing",
		"k8s.io/":            "the rules are those of the scheduler's filters, on values without objects",
	})
	importtest.Imports(t, map[string]string{
		"net":       "places and pods are all that counts",
		"os":        "places and pods are all that counts",
		"log":       "what found no place is the result of State.Add",
		"log/slog":  "what found no place is the result of State.Add",
		"math/rand": "equal input must give an equal answer",
		"time":      "equal input must give an equal answer",
	})
}
