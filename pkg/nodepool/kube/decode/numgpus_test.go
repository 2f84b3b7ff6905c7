package decode

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The operator's own command line is what derived must say, for every spec that was sent to it.
func TestDerivedIsTheFlagThatTheOperatorPasses(t *testing.T) {
	passed, silent := 0, 0
	eachFixture(t, func(t *testing.T, f fixture) {
		if len(f.Operator.Flags) == 0 {
			return
		}
		group := f.groupFields(&Report{})
		annotations := FieldsOf(f.Cluster, nil).Object("metadata").Texts("annotations")
		spec := gpuSpec(startOf(group, annotations[overwriteAnnotation] == "true" || overwritesCommand(group.Object("template"))))
		text, isText := f.Operator.Flags[numGPUs].(string)
		n, err := strconv.ParseInt(text, 10, 64)
		if !isText || err != nil || n < 0 {
			silent++
			if spec.Derived != nil || spec.DerivedBy != "" {
				t.Errorf("derived %v by %q, and the operator passes %v", spec.Derived, spec.DerivedBy, f.Operator.Flags[numGPUs])
			}
			return
		}
		passed++
		want := raydemand.Whole(n)
		if diff := cmp.Diff(&want, spec.Derived); diff != "" {
			t.Errorf("derived (-operator +ours):\n%s", diff)
		}
		if spec.DerivedBy == "" {
			t.Error("derived, and nothing says from what")
		}
	})
	if passed < 30 || silent < 20 {
		t.Errorf("%d fixtures pass a number and %d none: too few to prove anything", passed, silent)
	}
}

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

// Where Ray's autoscaler read the cluster, its number is recorded beside what the pod announces.
func TestRaysAutoscalerIsKnownToBelieveWhatItBelieves(t *testing.T) {
	compared, differ := 0, 0
	eachFixture(t, func(t *testing.T, f fixture) {
		if f.RayAutoscaler == nil || f.RayAutoscaler.Resources == nil {
			return
		}
		compared++
		group := f.groupFields(&Report{})
		want := raydemand.Whole(int64(f.RayAutoscaler.Resources[raydemand.GPU]))
		if got := gpusExpectedByRay(startOf(group, false)); got != want {
			t.Errorf("believed %s, Ray's autoscaler plans with %s", got, want)
		}
		cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: f.Cluster}, nil)
		g, isWorker := cluster.Group(f.Group)
		if !isWorker || f.RayStart == nil || f.RayStart.Error != "" || f.Operator.Error != nil {
			return
		}
		announced, counted := f.RayStart.Resources[raydemand.GPU].(float64)
		reported := 0
		for _, finding := range cluster.Findings {
			if finding.Code == RayAutoscalerDiffers && strings.Contains(finding.Field, "["+strconv.Itoa(g.Index)+"]") {
				reported++
			}
		}
		if wantTold := counted && raydemand.Whole(int64(announced)) != want; wantTold != (reported == 1) {
			t.Errorf("announced %v, planned %s: reported %d times", f.RayStart.Resources[raydemand.GPU], want, reported)
		}
		differ += reported
	})
	if compared < 70 || differ < 5 {
		t.Errorf("%d fixtures compared, %d differ: too few to prove anything", compared, differ)
	}
}

func TestTheAnnotationOfInstancesIsOneWordOrOneForEachGroup(t *testing.T) {
	for _, test := range []struct {
		annotation string
		cpu, gpu   nodepool.MIGGPUs
		reported   string
	}{
		{"", "", "", ""},
		{"one", nodepool.MIGOne, nodepool.MIGOne, ""},
		{`{"gpu": "one", "cpu": "all"}`, nodepool.MIGAll, nodepool.MIGOne, ""},
		{"1", "", "", "it is not all or one; each MIG instance counts as a GPU"},
		{`{"gpu": "two"}`, "", "", `the value of group gpu is "two", want all or one`},
	} {
		object := objectOf(t, "{metadata: {uid: u-1}, spec: {workerGroupSpecs: [{groupName: cpu}, {groupName: gpu}]}}")
		object["metadata"].(map[string]any)["annotations"] = map[string]any{nodepool.MIGGPUsAnnotation: test.annotation}
		cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: object}, nil)
		if cpu, gpu := cluster.Groups[0].MIGGPUs, cluster.Groups[1].MIGGPUs; cpu != test.cpu || gpu != test.gpu {
			t.Errorf("%s: %q and %q, want %q and %q", test.annotation, cpu, gpu, test.cpu, test.gpu)
		}
		reported := ""
		for _, f := range cluster.Findings {
			if strings.HasPrefix(f.Code, "annotation-") {
				reported += f.Why
			}
		}
		if (reported == "") != (test.reported == "") || !strings.Contains(reported, test.reported) {
			t.Errorf("%s: reported %q, want %q", test.annotation, reported, test.reported)
		}
	}
}

func TestTheSyncAnnotationIsOneWordOrOneForEachGroup(t *testing.T) {
	tests := []struct {
		name, annotation string
		cpu, gpu         nodepool.SyncMode
		reported         string
	}{
		{"nothing is asked for", "", "report", "report", ""},
		{"one word for all", "enforce", "enforce", "enforce", ""},
		{"one for each", `{"gpu": "when-empty"}`, "report", "when-empty", ""},
		{"a word that is none", "always", "report", "report", "it is not report, when-empty or enforce"},
		{"a bad entry costs only its group", `{"gpu": "enforce", "cpu": 3}`, "report", "enforce", "the value of group cpu is 3"},
		{"a group that is not there", `{"tpu": "enforce"}`, "report", "report", `no worker group "tpu"`},
		{"no JSON", `{"gpu"`, "report", "report", "not a JSON object"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := objectOf(t, "{metadata: {uid: u-1}, spec: {workerGroupSpecs: [{groupName: cpu}, {groupName: gpu}]}}")
			object["metadata"].(map[string]any)["annotations"] = map[string]any{NumGPUsSyncAnnotation: test.annotation}
			cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: object}, nil)
			if got := [2]nodepool.SyncMode{cluster.Groups[0].NumGPUsSync, cluster.Groups[1].NumGPUsSync}; got != [2]nodepool.SyncMode{test.cpu, test.gpu} {
				t.Errorf("modes are %v, want %v and %v", got, test.cpu, test.gpu)
			}
			var reported []string
			for _, f := range cluster.Findings {
				if strings.HasPrefix(f.Code, "annotation-") {
					reported = append(reported, f.Why)
				}
			}
			if len(reported) != min(1, len(test.reported)) || !strings.Contains(strings.Join(reported, ""), test.reported) {
				t.Errorf("reported %q, want %q", reported, test.reported)
			}
		})
	}
}
