package memory

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheMemoryCallsNothing(t *testing.T) {
	importtest.Only(t, "internal/controller/backoff", "internal/controller/breaker", "internal/controller/membership",
		"internal/controller/mode", "internal/controller/observation", "internal/controller/ownerstatus",
		"internal/controller/pace", "internal/controller/provision", "internal/controller/quota",
		"internal/controller/rayreport", "internal/controller/reduction", "internal/controller/reverts",
		"internal/controller/upgrade", "internal/planner", "pkg/nodepool", "pkg/nodepool/arrival",
		"pkg/nodepool/capacity", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                        "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc":         "package pkg/raydemand/gcs speaks to Ray",
		"internal/controller/head":       "the loop has the connection to Ray",
		"internal/controller/event":      "Events say what was decided; nothing that decides depends on them",
		"internal/controller/decision":   "a decision is the result of a cycle; what is decided next does not depend on it",
		"internal/controller/planbudget": "computing a large plan waits for others; the loop does that",
	})
	importtest.Imports(t, map[string]string{
		"context":     "the loop makes the calls",
		"log/slog":    "the loop logs",
		"sync":        "the loop holds its record while it uses a memory",
		"sync/atomic": "the loop holds its record while it uses a memory",
	})
}
