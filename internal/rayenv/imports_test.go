package rayenv

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestCredentialsComeFromTheEnvironmentAlone(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/raydemand/gcs")
	importtest.Imports(t, map[string]string{
		"k8s.io/":  "a sidecar may not read Secrets",
		"net/http": "a sidecar may not read Secrets",
		"log/slog": "an error is a result",
	})
}
