package made

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestObjectsAreDescribedWithoutAClient(t *testing.T) {
	importtest.Only(t)
	importtest.Dependencies(t, map[string]string{
		"k8s.io/client-go": "packages buffers and provisioning read and write",
		"pkg/nodepool":     "it is metadata alone",
	})
}
