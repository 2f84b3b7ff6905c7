package gcs

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheAdapterKnowsTheWireAndTheVocabularyAlone(t *testing.T) {
	importtest.Only(t, "api/proto/autoscalerpb", "api/proto/raypb", "pkg/raydemand", "pkg/raydemand/jobs")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":       "adapters do not know each other",
		"pkg/nodepool/": "adapters do not know each other",
	})
}
