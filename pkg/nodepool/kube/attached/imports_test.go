package attached

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestObjectsAreReadBesideTheManager(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/reflector")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":               "the manager stands above its reads",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; these reads may be forbidden",
	})
}
