package decode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fixture is one recorded worker group (or head): the RayCluster, what the operator v1.6.2 made of it, and what Ray
// 2.60 announces with that command line.
type fixture struct {
	Cluster  map[string]any `json:"cluster"`
	Group    string         `json:"group"`
	Operator struct {
		Flags map[string]any `json:"flags"`
		Error *struct {
			By      string `json:"by"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"error"`
		GeneratedFlags map[string]any `json:"generatedFlags"`
	} `json:"operator"`
	RayStart *struct {
		Resources map[string]any    `json:"resources"`
		Labels    map[string]string `json:"labels"`
		Error     string            `json:"error"`
	} `json:"rayStart"`
	// RayAutoscaler is what Ray's own autoscaler plans the group with; without Resources it cannot read the cluster.
	RayAutoscaler *struct {
		Resources map[string]float64 `json:"resources"`
	} `json:"rayAutoscaler"`
}

func eachFixture(t *testing.T, test func(t *testing.T, f fixture)) {
	paths, err := filepath.Glob("testdata/rayclusters/*.yaml")
	if err != nil || len(paths) < 99 {
		t.Fatalf("found %d fixtures, %v; want at least 99", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var f fixture
			if err := yaml.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			test(t, f)
		})
	}
}

// groupFields returns the raw entry of the fixture's group, the head group included.
func (f fixture) groupFields(report *Report) Fields {
	spec := FieldsOf(f.Cluster, report).Object("spec")
	for _, entry := range spec.Objects("workerGroupSpecs") {
		if entry.Text("groupName") == f.Group {
			return entry
		}
	}
	return spec.Object("headGroupSpec")
}

func codes(list []raydemand.Finding) []string {
	var codes []string
	for _, finding := range list {
		codes = append(codes, finding.Code)
	}
	return codes
}

func TestEffectiveResourcesAreThoseOfRayStart(t *testing.T) {
	compared := 0
	eachFixture(t, func(t *testing.T, f fixture) {
		if f.RayStart == nil {
			return
		}
		compared++
		report := &Report{}
		group := f.groupFields(report)
		annotations := FieldsOf(f.Cluster, report).Object("metadata").Texts("annotations")
		got := effectiveResources(group, annotations[overwriteAnnotation] == "true" || templateOverwritesCommand(group))
		if f.RayStart.Error != "" {
			if !slices.Contains(codes(report.All), RayStartFails) {
				t.Errorf("findings %v, want %s: ray start ends with %q", report.All, RayStartFails, f.RayStart.Error)
			}
			return
		}
		// The recorded command ran on no TPU; on a machine of a slice Ray adds this by itself.
		delete(got, "TPU-v4-16-head")
		want := raydemand.Bundle{}
		for name, value := range f.RayStart.Resources {
			if number, ok := value.(float64); ok {
				want[name] = raydemand.Whole(int64(number))
			} else if _, limited := got[name]; limited && name == raydemand.CPU {
				want[name] = raydemand.Whole(4) // Ray takes it from the container's limit, which the recording had not
			} else if name != raydemand.GPU && !slices.ContainsFunc(report.All, func(x raydemand.Finding) bool {
				return x.Code == ResourceUnknown && strings.Contains(x.Why, name)
			}) {
				t.Errorf("%s is detected by Ray and no finding says so: %v", name, report.All)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("announced (-ray start +ours):\n%s", diff)
		}
	})
	if compared < 80 {
		t.Errorf("only %d fixtures have a rayStart", compared)
	}
}

func TestStartWordsAreTheOperatorsFlags(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		want := f.Operator.Flags
		if f.Operator.GeneratedFlags != nil {
			want = f.Operator.GeneratedFlags
		}
		if f.Operator.Error != nil || len(want) == 0 {
			return
		}
		group := f.groupFields(&Report{})
		container := decodeContainer(group.Object("template").Object("spec").Objects("containers")[0])
		params := startParams(group.Texts("rayStartParams"), group.Texts("resources"), container, group)
		got := map[string]any{}
		for _, word := range shellWords(startScript(params)) {
			name, value, assigned := strings.Cut(strings.TrimPrefix(word, "--"), "=")
			if !takesValue(name) {
				continue
			}
			got[name] = any(value)
			if !assigned {
				got[name] = true
			}
		}
		relevant := map[string]any{}
		for name, value := range want {
			if takesValue(name) {
				relevant[name] = value
			}
		}
		if diff := cmp.Diff(relevant, got); diff != "" {
			t.Errorf("flags (-operator +ours):\n%s", diff)
		}
	})
}

func TestRefusalsAreFindings(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: f.Cluster}, nil)
		reason := ""
		if f.Operator.Error != nil {
			reason = f.Operator.Error.Reason
		}
		if want := reason == "InvalidRayClusterSpec"; cluster.Refused != want {
			t.Errorf("Refused is %v, want %v: %v; findings %v", cluster.Refused, want, f.Operator.Error, cluster.Findings)
		}
		if cluster.Refused && !slices.ContainsFunc(codes(cluster.Findings), func(code string) bool {
			return code == nodepool.SpecRefused || code == MinAboveMax
		}) {
			t.Errorf("findings %v do not say why the spec is refused", cluster.Findings)
		}
		if want := reason == "FailedToCreateWorkerPod"; slices.Contains(codes(cluster.Findings), PodsRefused) != want {
			t.Errorf("findings %v; pods refused: %v", cluster.Findings, want)
		}
		if f.Operator.Error != nil && f.Operator.Error.By == "API server" && !slices.Contains(codes(cluster.Findings), FieldUnreadable) {
			t.Errorf("findings %v do not say what the API server refuses", cluster.Findings)
		}
		if cluster.ManagedElsewhere != (strings.Contains(t.Name(), "managed-by")) {
			t.Errorf("ManagedElsewhere is %v", cluster.ManagedElsewhere)
		}
		if group, ok := cluster.Group(f.Group); ok {
			broken := f.RayStart != nil && f.RayStart.Error != "" || reason == "FailedToCreateWorkerPod" || strings.Contains(t.Name(), "negative-max")
			if group.Broken != (broken || f.Operator.Error != nil && f.Operator.Error.By == "API server") {
				t.Errorf("Broken is %v; findings %v", group.Broken, cluster.Findings)
			}
			if f.RayStart != nil && len(f.RayStart.Labels) > 0 {
				if diff := cmp.Diff(f.RayStart.Labels, group.Labels); diff != "" {
					t.Errorf("labels (-ray start +ours):\n%s", diff)
				}
			}
		}
	})
}

// An operator that has accepted the generation knows better than rules of v1.6.2.
func TestAnAcceptedSpecIsNotRefused(t *testing.T) {
	eachFixture(t, func(t *testing.T, f fixture) {
		if f.Operator.Error == nil || f.Operator.Error.Reason != "InvalidRayClusterSpec" {
			return
		}
		f.Cluster["metadata"].(map[string]any)["generation"] = int64(3)
		f.Cluster["status"] = map[string]any{"observedGeneration": int64(3)}
		if cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: f.Cluster}, nil); cluster.Refused {
			t.Error("Refused although the operator observed this generation")
		}
		f.Cluster["status"] = map[string]any{"observedGeneration": int64(2)}
		if cluster := Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: f.Cluster}, nil); !cluster.Refused {
			t.Error("not Refused although the operator has stopped at an older generation")
		}
	})
}

type shapeCase struct {
	Spec struct {
		GroupName      string            `json:"groupName"`
		MinReplicas    int               `json:"minReplicas"`
		MaxReplicas    int               `json:"maxReplicas"`
		NumOfHosts     int               `json:"numOfHosts"`
		RayStartParams map[string]any    `json:"rayStartParams"`
		Limits         map[string]any    `json:"limits"`
		Requests       map[string]any    `json:"requests"`
		Resources      map[string]any    `json:"resources"`
		Labels         map[string]any    `json:"labels"`
		NodeSelector   map[string]string `json:"nodeSelector"`
	} `json:"workerGroupSpec"`
	Quantities []struct {
		In  string  `json:"in"`
		Out float64 `json:"out"`
	} `json:"quantities"`
	Expect struct {
		Shape struct {
			Resources map[string]float64 `json:"resources"`
			Labels    map[string]string  `json:"labels"`
		} `json:"shape"`
	} `json:"expect"`
}

func readShape(t *testing.T, name string) shapeCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/group-shape/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var c shapeCase
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c shapeCase) cluster() nodepool.Cluster {
	return Cluster(sharing.Reader{}, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shape", "namespace": "ml"},
		"spec": map[string]any{
			"enableInTreeAutoscaling": true,
			"headGroupSpec":           template(map[string]any{}, map[string]any{}),
			"workerGroupSpecs": []any{func() map[string]any {
				g := template(c.Spec.Limits, c.Spec.Requests)
				g["groupName"], g["minReplicas"], g["maxReplicas"] = c.Spec.GroupName, int64(c.Spec.MinReplicas), int64(c.Spec.MaxReplicas)
				g["numOfHosts"], g["rayStartParams"] = int64(c.Spec.NumOfHosts), c.Spec.RayStartParams
				g["resources"], g["labels"] = c.Spec.Resources, c.Spec.Labels
				return g
			}()},
		},
	}}, nil)
}

func template(limits, requests map[string]any) map[string]any {
	return map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "ray", "resources": map[string]any{"limits": limits, "requests": requests}},
	}}}}
}

// The cases hold what Ray's autoscaler plans with. Where the operator passes something else to `ray start`, the
// difference is written here with its reason; everywhere else the two agree.
func TestGroupShapesAgreeWithRaysAutoscalerWhereTheOperatorDoes(t *testing.T) {
	tests := []struct {
		name   string
		differ map[string]float64 // what the operator makes announced instead; 0: absent
	}{
		{name: "shape-num-gpus-overrides-gpu-limit"},
		{name: "shape-ray-start-params-override"},
		// Ray's autoscaler plans a slice head on every host; the operator passes none. The escaped form of resources
		// makes the operator drop the TPU of the limits as well.
		{name: "shape-tpu-v7x", differ: map[string]float64{"TPU-v7x-16-head": 0, "TPU": 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := readShape(t, test.name)
			want := raydemand.Bundle{}
			for name, n := range c.Expect.Shape.Resources {
				want[name] = raydemand.Whole(int64(n))
			}
			for name, n := range test.differ {
				delete(want, name)
				if n > 0 {
					want[name] = raydemand.Whole(int64(n))
				}
			}
			cluster := c.cluster()
			if diff := cmp.Diff(want, cluster.Groups[0].Resources); diff != "" {
				t.Errorf("resources (-case +ours):\n%s\nfindings %v", diff, cluster.Findings)
			}
		})
	}
}

func TestGroupShapesThatTheOperatorRefuses(t *testing.T) {
	for _, name := range []string{
		"shape-invalid-label-is-an-error", "shape-labels-in-start-params-ignored", "shape-labels-top-level-only",
		"shape-top-level-resources-win", "shape-top-level-tpu-wins",
	} {
		t.Run(name, func(t *testing.T) {
			cluster := readShape(t, name).cluster()
			if !cluster.Refused {
				t.Errorf("not refused; findings %v", cluster.Findings)
			}
		})
	}
}

// Double quotes inside double quotes: Ray's autoscaler cuts the outer ones, bash takes all of them and `ray start`
// ends.
func TestAResourcesStringThatBashEatsBreaksTheGroup(t *testing.T) {
	cluster := readShape(t, "shape-tpu-custom-resource").cluster()
	if !cluster.Groups[0].Broken || !slices.Contains(codes(cluster.Findings), RayStartFails) {
		t.Errorf("Broken %v, findings %v", cluster.Groups[0].Broken, cluster.Findings)
	}
}

// Ray's autoscaler fails the pass of the whole cluster; here the group is planned without a CPU, and a finding says so.
func TestAGroupWithoutCPUIsAFindingOfThatGroup(t *testing.T) {
	cluster := readShape(t, "shape-no-cpu-is-an-error").cluster()
	if _, has := cluster.Groups[0].Resources[raydemand.CPU]; has || !slices.Contains(codes(cluster.Findings), ResourceUnknown) {
		t.Errorf("resources %v, findings %v", cluster.Groups[0].Resources, cluster.Findings)
	}
}

func TestQuantitiesAreRoundedUp(t *testing.T) {
	c := readShape(t, "shape-quantity-rounding")
	if len(c.Quantities) == 0 {
		t.Fatal("the case has no quantities")
	}
	for _, q := range c.Quantities {
		group := FieldsOf(template(map[string]any{"memory": q.In}, nil), nil)
		if got := effectiveResources(group, false)[raydemand.Memory]; got != raydemand.Whole(int64(q.Out)) {
			t.Errorf("%s is announced as %s, want %.0f", q.In, got, q.Out)
		}
	}
}
