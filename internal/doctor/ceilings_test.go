package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeGroupsAreReadFromBothFormsOfTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		want   []nodeGroup
	}{
		// The text of docs for cluster-autoscaler 1.30 and later, shortened.
		"YAML": {`time: 2026-03-02 08:11:40 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: aks-gpua100-31245-vmss
  health:
    status: Healthy
    nodeCounts: {registered: {total: 2, ready: 2}}
    cloudProviderTarget: 2
    minSize: 0
    maxSize: 4
- name: aks-system-31245-vmss
  health: {minSize: 1, maxSize: 3}
`, []nodeGroup{{"aks-gpua100-31245-vmss", 4}, {"aks-system-31245-vmss", 3}}},
		"the text of older releases": {`Cluster-autoscaler status at 2023-05-04 12:00:00 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=3 unready=0 registered=3)

NodeGroups:
  Name:        eks-gpu-a100-3ec1
  Health:      Healthy (ready=2 unready=0 registered=2 cloudProviderTarget=2 (minSize=0, maxSize=4))
  ScaleUp:     NoActivity (ready=2 cloudProviderTarget=2)

  Name:        eks-cpu-77aa
  Health:      Healthy (ready=1 unready=0 cloudProviderTarget=1 (minSize=1, maxSize=10))
`, []nodeGroup{{"eks-gpu-a100-3ec1", 4}, {"eks-cpu-77aa", 10}}},
		"nothing":      {"", nil},
		"another text": {"nodeGroups: many", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, groupsOfStatus(c.status), cmp.AllowUnexported(nodeGroup{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPoolIsNamedByANodeGroupAsAWord(t *testing.T) {
	for _, c := range []struct {
		group, pool string
		want        bool
	}{
		{"aks-gpua100-31245-vmss", "gpua100", true},
		{"https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-prod-gpu-pool-7d1f-grp", "gpu-pool", true},
		{"aks-gpua100-31245-vmss", "gpu", false},
		{"eks-GPU-3ec1", "gpu", true},
		{"eks-gpu-3ec1", "gpu.*", false},
	} {
		if got := namesPool(c.group, c.pool); got != c.want {
			t.Errorf("%s names %s: %t", c.group, c.pool, got)
		}
	}
}

func TestASentenceOfTheAPIServerNamesWhoWasRefused(t *testing.T) {
	for message, want := range map[string]string{
		`User "system:serviceaccount:ray:autoscaler" cannot list`: "--serviceaccount=ray:autoscaler",
		`User "jane doe" cannot list`:                             "--user='jane doe'",
		`no`:                                                      "--serviceaccount=heliostat:heliostat  # with the account that doctor runs as",
	} {
		if got := subject(message); got != want {
			t.Errorf("%s: got %s, want %s", message, got, want)
		}
	}
}

func TestPlacesAreWrittenForPeopleAndForPatches(t *testing.T) {
	at := place{"spec", "workerGroupSpecs", 1, "limits", "nvidia.com/gpu", "a~b"}
	if got := at.String(); got != `spec.workerGroupSpecs[1].limits["nvidia.com/gpu"].a~b` {
		t.Errorf("got %s", got)
	}
	if got := at.pointer(); got != "/spec/workerGroupSpecs/1/limits/nvidia.com~1gpu/a~0b" {
		t.Errorf("got %s", got)
	}
}
