package requests_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestResourceRequestsKnowNoManager(t *testing.T) {
	importtest.Only(t, "api/v1alpha1", "internal/fieldpath", "pkg/fairshare", "pkg/nodepool", "pkg/nodepool/kube/finding",
		"pkg/nodepool/kube/rayobject", "pkg/nodepool/kube/reflector", "pkg/nodepool/kube/timing", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":                          "the manager stands above the requests",
		"pkg/nodepool/kube/watch":                    "nodes are read beside requests; neither needs the other",
		"sigs.k8s.io/controller-runtime/pkg/manager": "the manager's caches wait for their kind; this one may not be installed",
	})
}
