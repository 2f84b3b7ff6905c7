package decode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// shapeOf reads the spec of a pod template.
func shapeOf(t *testing.T, spec string) (landing.PodShape, []raydemand.Finding) {
	t.Helper()
	report := &Report{}
	return podShape(FieldsOf(map[string]any{"spec": objectOf(t, spec)}, report)), report.All
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
	if got := podShape(labelled).CardsAsked; got != 2 {
		t.Errorf("memory over %d cards, want 2", got)
	}
	for value, want := range map[string]string{"binpack": "binpack", " spread ": "spread", "mutex": ""} {
		annotated := FieldsOf(objectOf(t, `{metadata: {annotations: {hami.io/gpu-scheduler-policy: "`+value+`"}}, spec: {containers: []}}`), nil)
		if got := podShape(annotated).CardOrder; got != want {
			t.Errorf("%q: cards in order %q, want %q", value, got, want)
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
			worker, head := podShape(fields, waitGCSReady).Requests, podShape(fields).Requests
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
		NodeName: "gpu-0", Selector: map[string]string{"pool": "gpu"}, Requests: landing.Quantities{"cpu": 5000},
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

func TestRequestsOfAPodAreWhatTheSchedulerAsksFor(t *testing.T) {
	cpu := func(milli raydemand.Amount) landing.Quantities { return landing.Quantities{"cpu": milli * 10} }
	tests := []struct {
		name, template string
		want           landing.Quantities
	}{
		{"containers add up", `containers: [{resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 500m}}}]`, cpu(1500)},
		{"a request comes before a limit", `containers: [{resources: {requests: {cpu: 1}, limits: {cpu: 4}}}]`, cpu(1000)},
		{"a limit alone is the request", `containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]`, landing.Quantities{"nvidia.com/gpu": raydemand.Whole(2)}},
		{"a larger init container counts alone", `{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 2}}}]}`, cpu(3000)},
		{"a smaller init container does not count", `{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{resources: {requests: {cpu: 200m}}}]}`, cpu(1000)},
		{"an init container that keeps running adds up", `{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 200m}}}]}`, cpu(1200)},
		{"an init container runs beside those that were started before", `{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 3}}}]}`, cpu(4000)},
		{"a negative overhead gives nothing back", `{containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: -500m}}`, cpu(1000)},
		{"overhead comes on top", `{containers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m}}`, cpu(1250)},
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

func TestALabelThatIsNoNumberOfCardsIsKeptAsItStands(t *testing.T) {
	for text, want := range map[string]struct {
		cards  int64
		unread string
	}{"2": {2, ""}, "0": {0, `"0"`}, "-3": {0, `"-3"`}, "x": {0, `"x"`}} {
		labelled := FieldsOf(objectOf(t, `{metadata: {labels: {aliyun.com/gpu-count: "`+text+`"}}, spec: {containers: []}}`), nil)
		if shape := podShape(labelled); shape.CardsAsked != want.cards || shape.CardsInvalid != want.unread {
			t.Errorf("%s: %d cards, invalid %s", text, shape.CardsAsked, shape.CardsInvalid)
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
		shape := podShape(FieldsOf(objectOf(t, `{metadata: {annotations: {`+test.annotations+`}}, spec: {containers: [
			{name: ray-worker, resources: {limits: {`+test.limit+`: "1"}}}]}}`), nil))
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
