package decode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
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
		cluster := joined(&unstructured.Unstructured{Object: f.Cluster}, nil)
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

func TestASettingOfGroupsIsOneWord(t *testing.T) {
	for _, test := range []struct{ key, text, want, reported string }{
		{NumGPUsSyncAnnotation, "", "report false", ""},
		{NumGPUsSyncAnnotation, "enforce", "enforce false", ""},
		{NumGPUsSyncAnnotation, "always", "report false", "it is not report, when-empty or enforce"},
		{nodepool.ProvisioningAnnotation, "true", "report true", ""},
		{nodepool.ProvisioningAnnotation, `{"gpu": true}`, "report false", "it is neither true nor false"},
	} {
		object := objectOf(t, "{metadata: {uid: u-1}, spec: {workerGroupSpecs: [{groupName: cpu}, {groupName: gpu}]}}")
		object["metadata"].(map[string]any)["annotations"] = map[string]any{test.key: test.text}
		cluster := joined(&unstructured.Unstructured{Object: object}, nil)
		var reported string
		for _, f := range cluster.Findings {
			if strings.HasPrefix(f.Code, "annotation-") {
				reported += f.Why
			}
		}
		for _, g := range cluster.Groups {
			if got := fmt.Sprint(g.NumGPUsSync, " ", g.Provisions); got != test.want {
				t.Errorf("%s: group %s has %s, want %s", test.text, g.Name, got, test.want)
			}
		}
		if !strings.Contains(reported, test.reported) || (reported == "") != (test.reported == "") {
			t.Errorf("%s: reported %q, want %q", test.text, reported, test.reported)
		}
	}
}

func TestDevicesByTheNameOfADeviceClassGiveNoNumber(t *testing.T) {
	for class, unknown := range map[string]bool{"gpu.nvidia.com": true, "rdma.example.com": false} {
		spec := objectOf(t, "spec: {workerGroupSpecs: [{groupName: g, template: {spec: {containers: [{name: ray, resources: {limits: "+
			`{cpu: "1", memory: 1Gi, deviceclass.resource.kubernetes.io/`+class+`: "2"}}}]}}}]}`)
		cluster := joined(&unstructured.Unstructured{Object: spec}, nil)
		reported := slices.ContainsFunc(cluster.Findings, func(f raydemand.Finding) bool {
			return f.Code == ResourceUnknown && strings.Contains(f.Why, "how much GPU")
		})
		if claims := cluster.Groups[0].GPUs.Claims; !claims || reported != unknown {
			t.Errorf("%s: claims %t, want true; unknown GPUs are reported: %t, want %t", class, claims, reported, unknown)
		}
	}
}
