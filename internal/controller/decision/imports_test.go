package decision

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestDecisionsAreValues(t *testing.T) {
	importtest.Only(t, "internal/controller/mode", "internal/planner", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/raydemand", "pkg/raydemand/jobs")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "package pkg/nodepool/kube knows Kubernetes objects",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
}
