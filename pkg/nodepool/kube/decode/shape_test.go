package decode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shapeOf reads the spec of a pod template.
func shapeOf(t *testing.T, spec string) (landing.PodShape, []raydemand.Finding) {
	t.Helper()
	report := &Report{}
	return podShape(podOf(FieldsOf(map[string]any{"spec": objectOf(t, spec)}, report))), report.All
}

func TestATemplateTellsWhatItsPodsSeeOfGPUs(t *testing.T) {
	container := func(value string) string {
		return `containers: [{env: [{name: NVIDIA_VISIBLE_DEVICES, ` + value + `}]}, {env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]`
	}
	for value, hides := range map[string]bool{`value: void`: true, `value: none`: true, `value: ""`: true, `value: all`: false, `value: "0"`: false,
		`valueFrom: {fieldRef: {fieldPath: metadata.name}}`: false} {
		if got, _ := shapeOf(t, container(value)); got.HidesGPUs != hides {
			t.Errorf("%s hides GPUs: %t, want %t", value, got.HidesGPUs, hides)
		}
	}
	if got, _ := shapeOf(t, `containers: [{name: ray}]`); got.HidesGPUs || got.Claims {
		t.Errorf("without a word: %+v", got)
	}
	if got, _ := shapeOf(t, `resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]`); !got.Claims {
		t.Error("a DRA claim was not seen")
	}
	labelled := FieldsOf(objectOf(t, `{metadata: {labels: {aliyun.com/gpu-count: "2"}}, spec: {containers: []}}`), nil)
	if got := podShape(podOf(labelled)).CardsAsked; got != 2 {
		t.Errorf("memory over %d cards, want 2", got)
	}
}

func TestContainersThatEachAskForMemoryOfCardsHavePartsOfTheirOwn(t *testing.T) {
	const asks = `{resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 8000}}}`
	for containers, want := range map[string]int{
		asks: 0, asks + `, {resources: {limits: {cpu: 1}}}`: 0, asks + `, ` + asks: 2,
		asks + `, {resources: {limits: {nvidia.com/gpu: 1}}}`: 0,
	} {
		got, _ := shapeOf(t, `containers: [`+containers+`]`)
		if len(got.Parts) != want || want > 0 && got.Parts[1]["nvidia.com/gpumem"] != raydemand.Whole(8000) {
			t.Errorf("%s: parts %v, want %d", containers, got.Parts, want)
		}
	}
}

func TestAWorkerTakesAtLeastWhatTheOperatorsInitContainerRequests(t *testing.T) {
	const tiny = `containers: [{name: ray, resources: {limits: {cpu: 100m, memory: 1Gi}}}]`
	for name, test := range map[string]struct{ spec, worker, head string }{
		"a tiny worker takes the CPU of the init container": {tiny, "0.2", "0.1"},
		"a larger one takes its own":                        {`containers: [{name: ray, resources: {limits: {cpu: "2"}}}]`, "2", "2"},
		"one that requests nothing fits everywhere":         {`containers: [{name: ray}]`, "0", "0"},
		"a native sidecar runs beside the init container": {
			"initContainers: [{name: proxy, restartPolicy: Always, resources: {requests: {cpu: 150m}}}]\n" + tiny, "0.35", "0.25"},
		"of two init containers, the larger one counts": {
			"initContainers: [{name: pull, resources: {requests: {cpu: 300m}}}]\n" + tiny, "0.3", "0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			fields := FieldsOf(objectOf(t, "spec:\n  "+strings.ReplaceAll(test.spec, "\n", "\n  ")), nil)
			worker, head := podShape(podOf(fields), waitForGCS).Requests, podShape(podOf(fields)).Requests
			if worker["cpu"].String() != test.worker || head["cpu"].String() != test.head {
				t.Errorf("a worker takes cpu %s and a head %s, want %s and %s", worker["cpu"], head["cpu"], test.worker, test.head)
			}
		})
	}
}

func TestATemplateTellsWhereItsPodsCanLand(t *testing.T) {
	got, findings := shapeOf(t, `
nodeName: gpu-0
nodeSelector: {pool: gpu}
tolerations:
- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
- {key: team, value: ml, tolerationSeconds: 30}
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: x, operator: Exists}]}}]
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: gpus, operator: Gt, values: ["3"]}]
        matchFields: [{key: metadata.name, operator: In, values: [gpu-0]}]
containers: [{resources: {limits: {cpu: 500m}}}]
`)
	want := landing.PodShape{
		NodeName: "gpu-0", Selector: map[string]string{"pool": "gpu"}, Requests: landing.Quantities{"cpu": 5000}, Limits: landing.Quantities{"cpu": 5000},
		Tolerations: []landing.Toleration{
			{Key: "nvidia.com/gpu", Operator: "Exists", Effect: sharing.NoSchedule}, {Key: "team", Value: "ml"},
		},
		Affinity: []landing.NodeTerm{{
			Labels: []landing.Requirement{{Key: "gpus", Operator: "Gt", Values: []string{"3"}}},
			Fields: []landing.Requirement{{Key: "metadata.name", Operator: "In", Values: []string{"gpu-0"}}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shape (-want +got):\n%s", diff)
	}
	if len(findings) > 0 {
		t.Errorf("findings %v", findings)
	}
}

// What the scheduler counts of a pod is in TestABoundPodTakesWhatTheSchedulerCounts.
func TestRequestsOfATemplateAreThoseOfItsPods(t *testing.T) {
	cpu := func(milli raydemand.Amount) landing.Quantities { return landing.Quantities{"cpu": milli * 10} }
	tests := []struct {
		name, template string
		want           landing.Quantities
	}{
		{"a limit alone is the request", `containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]`, landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}},
		{"the pod's own requests replace the sum", `{containers: [{resources: {requests: {cpu: 1}}}], resources: {requests: {cpu: 6}, limits: {cpu: 8}}}`, cpu(6000)},
		{"nothing asked is nothing", `containers: [{resources: {requests: {cpu: 0}}}]`, landing.Quantities{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _ := shapeOf(t, test.template)
			if diff := cmp.Diff(test.want, got.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAShapeCannotBeReadFromIsAFinding(t *testing.T) {
	for _, template := range []string{`nodeSelector: gpu`, `tolerations: {}`, `affinity: [x]`, `containers: [{resources: {limits: {cpu: much}}}]`, `overhead: 3`} {
		if _, findings := shapeOf(t, template); len(findings) != 1 || findings[0].Code != FieldUnreadable {
			t.Errorf("%s: findings %v, want one %s", template, findings, FieldUnreadable)
		}
	}
}

func TestQuantitiesStopAtTheLargestAmount(t *testing.T) {
	for text, want := range map[string]raydemand.Amount{
		"1m": 10, "1": raydemand.One, "1n": 1, "8Gi": raydemand.Whole(8 << 30), "100E": raydemand.MaxAmount, "10E": raydemand.MaxAmount, "-100E": -raydemand.MaxAmount,
	} {
		if got := Amount(resource.MustParse(text)); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

func TestPodsThatUseGPUsWhichNoRequestCountsStayApart(t *testing.T) {
	const limits = `resources: {limits: {cpu: "8"}}`
	for name, test := range map[string]struct {
		params, spec string
		apart        bool
	}{
		"all GPUs by the runtime class":       {`{num-gpus: "2"}`, "{runtimeClassName: nvidia, containers: [{name: ray, " + limits + "}]}", true},
		"all GPUs by the variable":            {`{num-gpus: "2"}`, "{containers: [{name: ray, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}], " + limits + "}]}", true},
		"Ray has none of them":                {`{num-gpus: "0"}`, "{runtimeClassName: nvidia, containers: [{name: ray, " + limits + "}]}", false},
		"the variable hides them":             {`{num-gpus: "2"}`, "{runtimeClassName: nvidia, containers: [{name: ray, env: [{name: NVIDIA_VISIBLE_DEVICES, value: void}], " + limits + "}]}", false},
		"the pod requests them":               {`{}`, `{runtimeClassName: nvidia, containers: [{name: ray, resources: {limits: {nvidia.com/gpu: "2"}}}]}`, false},
		"nothing shows that it sees any GPUs": {`{num-gpus: "2"}`, "{containers: [{name: ray, " + limits + "}]}", false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := objectOf(t, "workerGroupSpecs:\n- groupName: g\n  maxReplicas: 2\n  rayStartParams: "+test.params+"\n  template: {spec: "+test.spec+"}\n")
			groups := decodeGroups(sharing.Reader{}, FieldsOf(spec, &Report{}), nodepool.ClusterKey{Namespace: "n", Name: "c"}, false)
			own := &groups[0].Pod.Neighbors
			if got := own.Refuses(own); got != test.apart {
				t.Errorf("two pods stay apart: %t, want %t; %+v", got, test.apart, own.Apart)
			}
		})
	}
}

func TestAnnotationsThatKAIRefusesCloseTheGroup(t *testing.T) {
	const both = "gpu-fraction: \"0.5\", gpu-memory: \"2000\""
	for name, test := range map[string]struct{ annotations, limit, refused string }{
		"half a card is a part":                    {`gpu-fraction: "0.5"`, "cpu", ""},
		"memory on two cards is a part":            {`gpu-memory: "2000", gpu-fraction-num-devices: "2"`, "cpu", ""},
		"a negative memory is none":                {`gpu-memory: "-5"`, "cpu", "gpu-memory"},
		"a memory of 0 is none":                    {`gpu-memory: "0"`, "cpu", "gpu-memory"},
		"a memory with a unit is no number":        {`gpu-memory: 2Gi`, "cpu", "gpu-memory"},
		"a memory beyond 64 bits is no number":     {`gpu-memory: "99999999999999999999"`, "cpu", "gpu-memory"},
		"a fraction of 0 is none":                  {`gpu-fraction: "0"`, "cpu", "gpu-fraction"},
		"a fraction of 2 is more than a card":      {`gpu-fraction: "2"`, "cpu", "gpu-fraction"},
		"a fraction that is not a number is none":  {`gpu-fraction: NaN`, "cpu", "gpu-fraction"},
		"a negative number of cards is none":       {`gpu-fraction: "0.5", gpu-fraction-num-devices: "-1"`, "cpu", "gpu-fraction-num-devices"},
		"cards without a part of each are refused": {`gpu-fraction-num-devices: "2"`, "cpu", "gpu-fraction-num-devices"},
		"a fraction and a memory are refused":      {both, "cpu", "gpu-memory"},
		"a fraction beside a whole GPU is refused": {`gpu-fraction: "0.5"`, "nvidia.com/gpu", "gpu-fraction"},
	} {
		shape := podShape(podOf(FieldsOf(objectOf(t, `{metadata: {annotations: {`+test.annotations+`}}, spec: {containers: [
			{name: ray-worker, resources: {limits: {`+test.limit+`: "1"}}}]}}`), nil)))
		refused := ""
		for _, f := range landing.CheckGPUs(sharing.Reader{}, &shape) {
			if f.Code == landing.GPUFractionRefused && f.Severity == raydemand.Error {
				refused = f.Field
			}
		}
		if refused != test.refused {
			t.Errorf("%s: KAI refuses %q of %+v, want %q", name, refused, shape.Share, test.refused)
		}
	}
}

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
}

func eachFixture(t *testing.T, test func(t *testing.T, f fixture)) {
	paths, err := filepath.Glob("testdata/rayclusters/*.yaml")
	if err != nil || len(paths) < 99 {
		t.Fatalf("found %d fixtures, %v; want at least 99", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			test(t, readData[fixture](t, path))
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
		got := effectiveResources(startOf(group, podOf(group.Object("template")), annotations[overwriteAnnotation] == "true" || overwritesCommand(group.Object("template"))))
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
		container := podOf(group.Object("template")).Spec.Containers[0]
		params := startParams(group.Texts("rayStartParams"), group.Texts("resources"), container, group)
		got := map[string]any{}
		for _, word := range flagWords(startScript(params)) {
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
		cluster := joined(&unstructured.Unstructured{Object: f.Cluster}, nil)
		reason := ""
		if f.Operator.Error != nil {
			reason = f.Operator.Error.Reason
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

type shapeCase struct {
	Spec struct {
		GroupName      string         `json:"groupName"`
		MinReplicas    int            `json:"minReplicas"`
		MaxReplicas    int            `json:"maxReplicas"`
		NumOfHosts     int            `json:"numOfHosts"`
		RayStartParams map[string]any `json:"rayStartParams"`
		Limits         map[string]any `json:"limits"`
		Requests       map[string]any `json:"requests"`
		Resources      map[string]any `json:"resources"`
		Labels         map[string]any `json:"labels"`
	} `json:"workerGroupSpec"`
}

// readData reads a file of YAML or JSON.
func readData[T any](t *testing.T, path string) (value T) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	must(t, yaml.Unmarshal(raw, &value))
	return value
}

// shapedCluster returns a RayCluster with the group of a recorded case.
func shapedCluster(t *testing.T, name string) nodepool.Cluster {
	t.Helper()
	c := readData[shapeCase](t, "testdata/group-shape/"+name+".json")
	return joined(&unstructured.Unstructured{Object: map[string]any{
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

// Double quotes inside double quotes: Ray's autoscaler cuts the outer ones, bash takes all of them and `ray start`
// ends.
func TestAResourcesStringThatBashEatsBreaksTheGroup(t *testing.T) {
	cluster := shapedCluster(t, "shape-tpu-custom-resource")
	if !cluster.Groups[0].Broken || !slices.Contains(codes(cluster.Findings), RayStartFails) {
		t.Errorf("Broken %v, findings %v", cluster.Groups[0].Broken, cluster.Findings)
	}
}

// Ray's autoscaler fails the pass of the whole cluster; here the group is planned without a CPU, and a finding says so.
func TestAGroupWithoutCPUIsAFindingOfThatGroup(t *testing.T) {
	cluster := shapedCluster(t, "shape-no-cpu-is-an-error")
	if _, has := cluster.Groups[0].Resources[raydemand.CPU]; has || !slices.Contains(codes(cluster.Findings), ResourceUnknown) {
		t.Errorf("resources %v, findings %v", cluster.Groups[0].Resources, cluster.Findings)
	}
}

func TestTheTypeOfATPUSliceFollowsFromItsNodeSelectors(t *testing.T) {
	c := readData[struct {
		TPUTypes []struct{ Accelerator, Topology, Type string }
	}](t, "testdata/group-shape/shape-tpu-type-from-selectors.json")
	if len(c.TPUTypes) == 0 {
		t.Fatal("the case has no types")
	}
	sliceOf := func(accelerator, topology string) string {
		return landing.TPUPodTypeOf(map[string]string{
			"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology,
		})
	}
	for _, want := range c.TPUTypes {
		if got := sliceOf(want.Accelerator, want.Topology); got != want.Type {
			t.Errorf("%s of %s is %q, want %q", want.Accelerator, want.Topology, got, want.Type)
		}
	}
	for _, topology := range []string{"2x", "x", "-1x2", "2x99999999999999999999", "2by2"} {
		if got := sliceOf("tpu-v4-podslice", topology); got != "" {
			t.Errorf("topology %q gives %q", topology, got)
		}
	}
}

func TestAGroupOfTPUsBringsTheResourceByWhichItsSliceIsTaken(t *testing.T) {
	const template = `
template:
  spec:
    nodeSelector: {cloud.google.com/gke-tpu-topology: %s, cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice}
    containers: [{name: ray, resources: {limits: {cpu: "1", google.com/tpu: "4"}}}]
`
	group := FieldsOf(objectOf(t, fmt.Sprintf(template, "4x4")), nil)
	if got := effectiveResources(startOf(group, podOf(group.Object("template")), false)); got["TPU-v6e-16-head"] != raydemand.One || got["TPU"] != raydemand.Whole(4) {
		t.Errorf("resources %v, want four TPUs and the head of a v6e-16", got)
	}
	group = FieldsOf(objectOf(t, fmt.Sprintf(template, "any")), nil)
	for name := range effectiveResources(startOf(group, podOf(group.Object("template")), false)) {
		if name != "CPU" && name != "TPU" {
			t.Errorf("announces %s for a topology that nobody can read", name)
		}
	}
}

func TestTheSourcesOfRaysOwnLabelsAreReadFromTheTemplate(t *testing.T) {
	const zone, market = "ray.io/availability-zone", "ray.io/market-type"
	env := func(variables string) string {
		return `template: {spec: {containers: [{name: ray, env: [` + variables + `]}]}}`
	}
	field := func(path string) string {
		return `{name: RAY_NODE_ZONE, valueFrom: {fieldRef: {fieldPath: "` + path + `"}}}`
	}
	// refers is a group whose override takes a label from the variable R.
	refers := func(r, value string) string {
		return env(r + `{name: RAY_OVERRIDE_LABELS, value: '{"rack": "` + value + `"}'}, {name: LATE, value: r9}`)
	}
	rack := func(from landing.LabelSource) map[string]landing.LabelSource {
		from.Overrides = true
		return map[string]landing.LabelSource{"rack": from}
	}
	const replica = "metadata.labels['ray.io/worker-group-replica-name']"
	ofField := func(path string) string {
		return `{name: R, valueFrom: {fieldRef: {fieldPath: "` + path + `"}}}, `
	}
	for name, c := range map[string]struct {
		group   string
		sources map[string]landing.LabelSource
		labels  map[string]string
	}{
		"nothing":                        {env(``), nil, nil},
		"a value":                        {env(`{name: RAY_NODE_MARKET_TYPE, value: spot}`), map[string]landing.LabelSource{market: {Value: "spot"}}, nil},
		"an empty value":                 {env(`{name: RAY_NODE_MARKET_TYPE, value: ""}`), nil, nil},
		"the node's zone":                {env(field("metadata.labels['topology.kubernetes.io/zone']")), map[string]landing.LabelSource{zone: {NodeLabel: "topology.kubernetes.io/zone"}}, nil},
		"the node's name":                {env(field("spec.nodeName")), map[string]landing.LabelSource{zone: {Unknown: "is the pod's spec.nodeName, which the template does not set"}}, nil},
		"an unset label":                 {env(field("metadata.labels['rack']")), map[string]landing.LabelSource{zone: {Unknown: "is the pod's metadata.labels['rack'], which the template does not set"}}, nil},
		"a set label":                    {`template: {metadata: {labels: {rack: r1}}, spec: {containers: [{name: ray, env: [` + field("metadata.labels['rack']") + `]}]}}`, map[string]landing.LabelSource{zone: {Value: "r1"}}, nil},
		"a group's label":                {`labels: {rack: r2}, ` + env(field("metadata.labels['rack']")), map[string]landing.LabelSource{zone: {Value: "r2"}}, map[string]string{"rack": "r2"}},
		"an annotation":                  {`template: {metadata: {annotations: {rack: r3}}, spec: {containers: [{name: ray, env: [` + field("metadata.annotations['rack']") + `]}]}}`, map[string]landing.LabelSource{zone: {Value: "r3"}}, nil},
		"a Secret":                       {env(`{name: RAY_NODE_ZONE, valueFrom: {secretKeyRef: {name: s, key: k}}}`), map[string]landing.LabelSource{zone: {Unknown: "comes from valueFrom, which Heliostat does not read"}}, nil},
		"the command":                    {`template: {spec: {containers: [{name: ray, command: ["bash", "-c", "export RAY_NODE_ZONE=$(zone); ulimit -n 65536"]}]}}`, map[string]landing.LabelSource{zone: {Unknown: "is set by the container's command"}}, nil},
		"the override refers to a value": {refers(`{name: R, value: r4}, `, "$(R)"), nil, map[string]string{"rack": "r4"}},
		"the override is the node's zone": {refers(ofField("metadata.labels['topology.kubernetes.io/zone']"), "$(R)"),
			rack(landing.LabelSource{NodeLabel: "topology.kubernetes.io/zone"}), map[string]string{}},
		"the override is the replica": {`numOfHosts: 2, labels: {rack: r1}, ` + refers(ofField(replica), "$(R)"), rack(landing.LabelSource{Replica: true}), map[string]string{}},
		"a group without replicas of several hosts": {refers(ofField(replica), "$(R)"),
			rack(landing.LabelSource{Unknown: "is the pod's " + replica + ", which the template does not set"}), map[string]string{}},
		"the override refers to a Secret": {refers(`{name: R, valueFrom: {secretKeyRef: {name: s, key: k}}}, `, "$(R)"),
			rack(landing.LabelSource{Unknown: `has "$(R)", which Heliostat does not resolve`}), map[string]string{}},
		"the override refers to a part":           {refers(ofField(replica), "r-$(R)"), rack(landing.LabelSource{Unknown: `has "r-$(R)", which Heliostat does not resolve`}), map[string]string{}},
		"the override refers to what comes later": {refers("", "$(LATE)"), rack(landing.LabelSource{Unknown: `has "$(LATE)", which Heliostat does not resolve`}), map[string]string{}},
		"the override is no object":               {env(`{name: RAY_OVERRIDE_LABELS, value: "rack"}`), nil, nil},
		"a variable refers to another":            {env(`{name: Z, value: z1}, {name: RAY_NODE_ZONE, value: $(Z)}`), map[string]landing.LabelSource{zone: {Value: "z1"}}, nil},
		"the override wins":                       {`labels: {rack: a, tier: b}, ` + env(`{name: RAY_OVERRIDE_LABELS, value: '{"rack": "c"}'}`), nil, map[string]string{"rack": "c", "tier": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			rayCluster, err := ReadManifest([]byte(`
metadata: {namespace: ml, name: llm}
spec: {headGroupSpec: {template: {spec: {containers: [{name: ray}]}}}, workerGroupSpecs: [{groupName: g, maxReplicas: 5, ` + c.group + `}]}`))
			must(t, err)
			got := joined(rayCluster, nil).Groups[0]
			if diff := cmp.Diff(c.sources, got.LabelSources); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.labels, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheRayContainersOwnRequestsAreKeptIfOthersRequestDevicesToo(t *testing.T) {
	const gpu = `resources: {limits: {nvidia.com/gpu: "1", nvidia.com/gpumem: "3000"}}`
	for name, test := range map[string]struct {
		spec string
		own  bool
	}{
		"alone":                  {"containers: [{name: ray, " + gpu + "}]", false},
		"a sidecar without":      {"containers: [{name: ray, " + gpu + `}, {name: a, resources: {limits: {cpu: "1"}}}]`, false},
		"a sidecar with devices": {"containers: [{name: ray, " + gpu + "}, {name: a, " + gpu + "}]", true},
		"an init container":      {"containers: [{name: ray, " + gpu + `}], initContainers: [{name: a, resources: {limits: {nvidia.com/gpumem: "9000"}}}]`, true},
	} {
		shape, _ := shapeOf(t, strings.ReplaceAll(test.spec, ", initContainers", "\ninitContainers"))
		if (shape.Own != nil) != test.own || test.own && shape.Own["nvidia.com/gpumem"] != raydemand.Whole(3000) {
			t.Errorf("%s: own requests %v of %v", name, shape.Own, shape.Requests)
		}
	}
}
