package watch_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestOptionalReadsKnowNoManager(t *testing.T) {
	importtest.Only(t, "internal/fieldpath", "pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/binpack", "pkg/nodepool/departure", "pkg/nodepool/kube/ceilings", "pkg/nodepool/kube/events", "pkg/nodepool/kube/finding",
		"pkg/nodepool/kube/namespaces", "pkg/nodepool/kube/nodeobject", "pkg/nodepool/kube/rayobject", "pkg/nodepool/kube/reflector", "pkg/nodepool/kube/timing", "pkg/nodepool/nodegpu",
		"pkg/nodepool/podfit", "pkg/nodepool/pools", "pkg/nodepool/raylabels", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":               "the manager stands above its reads",
		"pkg/nodepool/kube/requests":      "ResourceRequests are read beside nodes; neither needs the other",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; these reads may be forbidden",
	})
}
