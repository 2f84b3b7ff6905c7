package promise

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPromisesAreReadFromDecisions(t *testing.T) {
	importtest.Only(t, "internal/controller/decision", "internal/controller/membership", "internal/planner", "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
	importtest.Imports(t, map[string]string{
		"context":  "the loop makes the calls",
		"log/slog": "the loop logs",
	})
}
