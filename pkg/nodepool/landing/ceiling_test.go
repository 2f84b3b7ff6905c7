package landing_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

func ceiling(group string, minimum, maximum int64) landing.Ceiling {
	return landing.Ceiling{Group: group, MinNodes: &minimum, MaxNodes: &maximum, Source: "cluster-autoscaler"}
}

func TestNodeGroupsAreFoundByTheNamesThatCloudsGiveThem(t *testing.T) {
	names := []string{"gpu", "big-gpu", "u", "workers", "memory-node-zone1", "nodepool1"}
	tests := []struct{ group, want string }{
		{"nodepool1", "nodepool1"},
		{"aks-gpu-12345678-vmss", "gpu"},
		{"eks-workers-2c1f9d3b-a8e2-4f11-9c3e-8b7a6d5e4f30", "workers"},
		{"eksctl-prod-nodegroup-big-gpu-NodeGroup-1ABCDEF2GHIJ", "big-gpu"},
		{"https://www.googleapis.com/compute/v1/projects/p/zones/europe-west4-a/instanceGroups/gke-prod-gpu-0a1b2c3d-grp", "gpu"},
		{"https://www.googleapis.com/compute/v1/projects/p/zones/europe-west4-a/instanceGroups/gke-prod-big-gpu-0a1b2c3d-grp", "big-gpu"},
		{"MachineSet/openshift-machine-api/memory-node-zone1", "memory-node-zone1"},
		{"asg-of-somebody", ""},
		{"aks-gpux-12345678-vmss", ""},
	}
	for _, test := range tests {
		for range 2 {
			got := landing.CeilingsOf(names, []landing.Ceiling{ceiling(test.group, 0, 3)})
			if len(got) > 1 || test.want == "" && len(got) != 0 || test.want != "" && got[test.want].Group != test.group {
				t.Errorf("%s: %v, want pool %q", test.group, got, test.want)
			}
			slices.Reverse(names) // the order does not matter
		}
	}
}

func TestTheGroupsOfAPoolInAllZonesAddUp(t *testing.T) {
	got := landing.CeilingsOf([]string{"gpu"}, []landing.Ceiling{ceiling("a/gke-c-gpu-00000000-grp", 1, 3), ceiling("b/gke-c-gpu-11111111-grp", 0, 4)})["gpu"]
	want := ceiling("a/gke-c-gpu-00000000-grp,b/gke-c-gpu-11111111-grp", 1, 7)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ceiling (-want +got):\n%s", diff)
	}
	groups := []landing.Ceiling{{Group: "gpu"}, ceiling("x/gpu", 1, 3)}
	for range 2 {
		if got := landing.CeilingsOf([]string{"gpu"}, groups)["gpu"]; got.MaxNodes != nil {
			t.Errorf("a pool with a group that nothing bounds is bounded by %d", *got.MaxNodes)
		}
		slices.Reverse(groups)
	}
}
