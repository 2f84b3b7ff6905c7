package decode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestDerivedSaysWhereItComesFrom(t *testing.T) {
	one, two, three := raydemand.Whole(1), raydemand.Whole(2), raydemand.Whole(3)
	zero, half := raydemand.Whole(0), raydemand.Amount(5000)
	tests := map[string]nodepool.GPUSpec{
		"gpu-limits-1":                           {Derived: &one, DerivedBy: "limit nvidia.com/gpu", Field: "rayStartParams.num-gpus"},
		"mig-two-kinds":                          {Derived: &two, DerivedBy: "limit nvidia.com/mig-1g.5gb", Field: "rayStartParams.num-gpus"},
		"num-gpus-0-limit-1":                     {Declared: &zero, DeclaredBy: "rayStartParams.num-gpus", Derived: &zero, DerivedBy: "rayStartParams.num-gpus", Field: "rayStartParams.num-gpus"},
		"num-gpus-half":                          {Declared: &half, DeclaredBy: "rayStartParams.num-gpus", Field: "rayStartParams.num-gpus"},
		"num-gpus-text":                          {Field: "rayStartParams.num-gpus"},
		"gpu-shared":                             {Field: "rayStartParams.num-gpus"},
		"group-resources-full":                   {Declared: &one, DeclaredBy: "resources.GPU", Derived: &one, DerivedBy: "resources.GPU", Field: "resources.GPU"},
		"group-resources-k8s-gpu-name":           {Declared: &two, DeclaredBy: "resources.nvidia.com/gpu", Derived: &two, DerivedBy: "resources.nvidia.com/gpu", Field: "resources.nvidia.com/gpu"},
		"group-resources-custom-only-limits-gpu": {Derived: &one, DerivedBy: "limit nvidia.com/gpu", Field: "resources.GPU"},
		"user-cmd-with-ray-start": {Derived: &three, DerivedBy: "the container's command", Field: "rayStartParams.num-gpus",
			Fixed: "the container's own command starts Ray: change --num-gpus there"},
		"env-ray-preset": {Derived: &one, DerivedBy: "limit nvidia.com/gpu", Field: "rayStartParams.num-gpus",
			Fixed: "the container's variable RAY_OVERRIDE_RESOURCES sets the number: change GPU there"},
	}
	eachFixture(t, func(t *testing.T, f fixture) {
		_, name, _ := strings.Cut(t.Name(), "/")
		want, tested := tests[name]
		if !tested {
			return
		}
		delete(tests, name)
		cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: f.Cluster}, nil)
		group, ok := cluster.Group(f.Group)
		if !ok {
			t.Fatalf("no group %s", f.Group)
		}
		got := group.GPUs
		got.Limits, got.Counted, got.Passed = nil, nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
	})
	for name := range tests {
		t.Errorf("there is no fixture %s", name)
	}
}

func TestASettingOfGroupsIsOneWordOrOneForEachGroup(t *testing.T) {
	for _, test := range []struct{ key, annotation, cpu, gpu, reported string }{
		{NumGPUsSyncAnnotation, "", "report", "report", ""},
		{NumGPUsSyncAnnotation, "enforce", "enforce", "enforce", ""},
		{NumGPUsSyncAnnotation, `{"gpu": "when-empty"}`, "report", "when-empty", ""},
		{NumGPUsSyncAnnotation, "always", "report", "report", "it is not report, when-empty or enforce"},
		{NumGPUsSyncAnnotation, `{"gpu": "enforce", "cpu": 3}`, "report", "enforce", "the value of group cpu is 3"},
		{NumGPUsSyncAnnotation, `{"tpu": "enforce"}`, "report", "report", `no worker group "tpu"`},
		{NumGPUsSyncAnnotation, `{"gpu"`, "report", "report", "not a JSON object"},
		{nodepool.ProvisioningAnnotation, `{"gpu": true, "cpu": "false"}`, "false", "true", ""},
		{nodepool.ProvisioningAnnotation, "yes", "false", "false", "it is not true or false"},
	} {
		object := objectOf(t, "{metadata: {uid: u-1}, spec: {workerGroupSpecs: [{groupName: cpu}, {groupName: gpu}]}}")
		object["metadata"].(map[string]any)["annotations"] = map[string]any{test.key: test.annotation}
		cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: object}, nil)
		var got, reported []string
		for _, g := range cluster.Groups {
			got = append(got, map[string]string{NumGPUsSyncAnnotation: string(g.NumGPUsSync),
				nodepool.ProvisioningAnnotation: fmt.Sprint(g.Provisions)}[test.key])
		}
		for _, f := range cluster.Findings {
			if strings.HasPrefix(f.Code, "annotation-") {
				reported = append(reported, f.Why)
			}
		}
		if !slices.Equal(got, []string{test.cpu, test.gpu}) {
			t.Errorf("%s: groups have %q, want %q and %q", test.annotation, got, test.cpu, test.gpu)
		}
		if len(reported) != min(1, len(test.reported)) || !strings.Contains(strings.Join(reported, ""), test.reported) {
			t.Errorf("%s: reported %q, want %q", test.annotation, reported, test.reported)
		}
	}
}
