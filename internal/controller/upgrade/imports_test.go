package upgrade

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheRoomForAnUpgradeIsArithmetic(t *testing.T) {
	importtest.Only(t, "internal/fieldpath", "internal/planner", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":             "package pkg/nodepool/kube finds the RayClusters of a RayService",
		"net/http":            "package pkg/raydemand/serve reads Serve, and the loop calls it",
		"pkg/raydemand/serve": "adapters and the loop meet in cmd/autoscaler/engine",
	})
	importtest.Imports(t, map[string]string{"log/slog": "the loop logs", "context": "nothing here waits"})
}
