package outlook

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAnOutlookReadsDecisionsAlone(t *testing.T) {
	importtest.Only(t, "internal/controller/decision", "internal/controller/membership", "internal/forecast",
		"internal/planner", "pkg/nodepool")
	importtest.Imports(t, map[string]string{
		"os": "package pkg/nodepool/kube/histories stores histories", "log/slog": "an error is a result",
		"net": "internal/httpapi serves the answers", "math/rand": "equal decisions must give equal answers",
	})
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
}
