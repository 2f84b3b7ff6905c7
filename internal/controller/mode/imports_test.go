package mode

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestModesAreDecidedWithoutThePlanAndWithoutClients(t *testing.T) {
	importtest.Only(t, "internal/planner", "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
}
