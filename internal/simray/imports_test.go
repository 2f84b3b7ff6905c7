package simray

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestSimrayIsIndependentOfTheClientsThatItTests(t *testing.T) {
	importtest.Only(t, "api/proto/autoscalerpb", "api/proto/raypb", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/raydemand/gcs": "a client that shares code with the simulated head cannot find its own mistakes in it",
		"k8s.io/":           "a Ray head knows nothing of Kubernetes",
	})
}
