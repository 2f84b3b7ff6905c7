package provisioning_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestProvisioningRequestsAreReadBesideNodes(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/attached", "pkg/nodepool/kube/made", "pkg/nodepool/kube/reflector")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":               "the manager stands above its reads",
		"k8s.io/autoscaler":               "two API versions are read; the module requires its own Kubernetes",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; these reads may be forbidden",
	})
}
