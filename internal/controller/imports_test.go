package controller

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheLoopHasNoClients(t *testing.T) {
	importtest.Dependencies(t, map[string]string{
		"k8s.io/client-go/rest":           "the loop acts on Kubernetes through interfaces of its own",
		"k8s.io/client-go/kubernetes":     "the loop acts on Kubernetes through interfaces of its own",
		"sigs.k8s.io/controller-runtime/": "pkg/nodepool/kube has the manager",
		"google.golang.org/grpc":          "the loop acts on Ray through the interface head.Ray",
		"pkg/nodepool/kube":               "adapters and the loop meet in cmd/autoscaler/engine",
		"pkg/raydemand/gcs":               "adapters and the loop meet in cmd/autoscaler/engine",
		"internal/httpapi":                "the loop and the server meet in cmd/autoscaler/engine",
		"internal/telemetry":              "the loop returns values; cmd/autoscaler/engine reports them",
	})
}
