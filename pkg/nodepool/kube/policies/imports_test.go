package policies

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPoliciesAreReadBesideRequests(t *testing.T) {
	importtest.Only(t, "api/v1alpha1", "internal/fieldpath", "pkg/nodepool", "pkg/nodepool/capacity",
		"pkg/nodepool/capacity/policytext", "pkg/nodepool/kube/attached", "pkg/nodepool/kube/reflector", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube":               "the manager stands above its reads",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; these reads may be forbidden",
	})
}
