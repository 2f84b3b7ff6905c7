package ledger_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestALedgerIsArithmetic(t *testing.T) {
	importtest.Only(t, "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "a store outside keeps what is saved",
		"google.golang.org/grpc": "what Ray reports is given",
		"internal/planner":       "why a worker exists is given",
	})
	importtest.Imports(t, map[string]string{
		"os":        "what is saved is a value",
		"net":       "what is saved is a value",
		"log/slog":  "what cannot be restored is an error",
		"math/rand": "equal input must give equal sums",
	})
}
