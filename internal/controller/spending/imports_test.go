package spending

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestSpendingIsReadFromDecisions(t *testing.T) {
	importtest.Only(t, "internal/controller/decision", "internal/ledger", "internal/planner", "pkg/nodepool", "pkg/nodepool/podfit", "pkg/nodepool/price", "pkg/raydemand", "pkg/raydemand/jobs")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
	importtest.Imports(t, map[string]string{"time": "a decision has its own time"})
}
