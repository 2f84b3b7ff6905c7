package conformance

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAssertionsAreAboutTheWireAlone(t *testing.T) {
	importtest.Only(t, "api/proto/autoscalerpb", "api/proto/raypb", "internal/simray", "internal/simray/certs",
		"pkg/raydemand", "pkg/raydemand/gcs")
	importtest.Dependencies(t, map[string]string{
		"internal/controller/": "what the loop does with the replies is not part of the wire",
		"k8s.io/":              "a Ray head knows nothing of Kubernetes",
	})
}
