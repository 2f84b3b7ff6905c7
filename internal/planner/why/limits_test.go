package why

import "testing"

func TestDevicesOfClaimsAreNamedAsUsersKnowThem(t *testing.T) {
	for resource, want := range map[string]string{
		"nvidia.com/gpu": "nvidia.com/gpu",
		"deviceclass.resource.kubernetes.io/gpu.nvidia.com":   "devices of DeviceClass gpu.nvidia.com",
		"resourceclaimtemplates.resource.k8s.io/ml.one.large": "devices for claims of ResourceClaimTemplate ml/one.large",
	} {
		if got := devices(resource); got != want {
			t.Errorf("%s: %q, want %q", resource, got, want)
		}
	}
}
