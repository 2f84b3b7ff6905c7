package observation

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestObservationsCallNothing(t *testing.T) {
	importtest.Only(t, "internal/controller/breaker", "internal/controller/membership", "internal/planner", "internal/snapshotfile", "pkg/nodepool", "pkg/nodepool/arrival", "pkg/nodepool/podfit", "pkg/nodepool/pools", "pkg/nodepool/raylabels", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
	importtest.Imports(t, map[string]string{
		"context":  "the loop makes the calls",
		"log/slog": "the loop logs",
	})
}
