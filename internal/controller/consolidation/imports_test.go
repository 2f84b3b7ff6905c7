package consolidation

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestConsolidationCallsNobody(t *testing.T) {
	importtest.Only(t, "internal/controller/membership", "internal/controller/observation",
		"internal/controller/spending", "internal/planner", "pkg/nodepool", "pkg/nodepool/price", "pkg/raydemand")
	importtest.Imports(t, map[string]string{"context": "it decides from values"})
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
}
