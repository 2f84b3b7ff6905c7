package warmnodes

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestBuffersAreDecidedWithoutKubernetes(t *testing.T) {
	importtest.Only(t, "internal/controller/backoff", "internal/controller/decision", "internal/planner", "pkg/nodepool",
		"pkg/nodepool/capacity", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":           "package pkg/nodepool/kube/buffers knows Kubernetes objects",
		"pkg/nodepool/kube": "adapters and the loop meet in cmd/autoscaler/engine",
	})
	importtest.Imports(t, map[string]string{"log/slog": "the loop logs"})
}
