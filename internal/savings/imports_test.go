package savings

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestSavingsAreArithmetic(t *testing.T) {
	importtest.Only(t, "internal/ledger", "pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/nodepool/podfit", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "a store outside keeps what is recorded",
		"google.golang.org/grpc": "what Ray reports is given",
		"internal/planner":       "why a worker exists is given",
	})
	importtest.Imports(t, map[string]string{
		"os":        "what is recorded is a value",
		"net":       "what is recorded is a value",
		"log/slog":  "what cannot be restored is an error",
		"math/rand": "equal input must give equal sums",
	})
}
