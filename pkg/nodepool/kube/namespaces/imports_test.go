package namespaces_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestNamespacesAreReadAndNothingElse(t *testing.T) {
	importtest.Only(t, "internal/fieldpath", "pkg/nodepool", "pkg/nodepool/kube/finding", "pkg/nodepool/kube/rayobject",
		"pkg/nodepool/kube/reflector", "pkg/nodepool/kube/timing", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":               "the manager stands above its reads",
		"pkg/nodepool/kube/watch":         "nodes are read beside namespaces; watch adds both to a cluster",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; this read may be forbidden",
	})
}
