package serve

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheClientKnowsServeAlone(t *testing.T) {
	importtest.Only(t, "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "a head is an address and a token",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to the GCS",
	})
	importtest.Imports(t, map[string]string{
		"os": "the caller has the token", "log/slog": "an error is a result",
	})
}
