package provision

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestProvisioningRequestsAreDecidedAndNotWritten(t *testing.T) {
	importtest.Only(t, "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/": "package pkg/nodepool/kube writes ProvisioningRequests",
	})
	importtest.Imports(t, map[string]string{
		"context":  "the loop makes the calls",
		"log/slog": "the loop logs",
	})
}
