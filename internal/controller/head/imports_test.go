package head

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAConnectionKnowsNoPlan(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/raydemand", "pkg/raydemand/jobs")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
}
