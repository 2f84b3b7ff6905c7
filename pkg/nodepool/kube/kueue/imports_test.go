package kueue_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestQuotaIsReadBesideNodes(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/finding", "pkg/nodepool/kube/reflector", "pkg/nodepool/kube/units",
		"pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":               "the manager stands above its reads",
		"sigs.k8s.io/kueue":               "two API versions are read; Kueue's module requires its own Kubernetes",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; these reads may be forbidden",
	})
}
