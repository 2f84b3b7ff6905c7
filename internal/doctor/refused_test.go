package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// object returns an object as Read describes it.
func object(t *testing.T, text string) *Object {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	kind, _ := fields["kind"].(string)
	return &Object{Kind: kind, Name: "a", Fields: fields}
}

func TestATypeThatIsNotServedIsReportedWithTheOneThatIsMeant(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: ray.io/v1, kind: RayClsuter}":                     "kind: RayClsuter: want RayCluster",
		"{apiVersion: example.com/v1, kind: RayClusters}":               "kind: RayClusters: want RayCluster",
		"{kind: raycluster}":                                            "kind: raycluster: want RayCluster",
		"{apiVersion: apps/v1, kind: Deploymnet}":                       "kind: Deploymnet: want Deployment",
		"{apiVersion: v1, kind: pod}":                                   "kind: pod: want Pod",
		"{apiVersion: heliostat.dev/v1alpha1, kind: Policy}":            "kind: Policy: want CapacityPolicy or ResourceRequest",
		"{apiVersion: ray.io/v9, kind: RayCluster}":                     "apiVersion: ray.io/v9: want ray.io/v1 or ray.io/v1alpha1",
		"{apiVersion: example.com/v1, kind: RayCluster}":                "apiVersion: example.com/v1: want ray.io/v1 or ray.io/v1alpha1",
		"{apiVersion: v1, kind: RayCluster}":                            "apiVersion: v1: want ray.io/v1 or ray.io/v1alpha1",
		"{kind: RayJob}":                                                "apiVersion: missing: want ray.io/v1 or ray.io/v1alpha1",
		"{apiVersion: apps/v1, kind: Pod}":                              "apiVersion: apps/v1: want v1",
		"{apiVersion: v1, kind: Deployment}":                            "apiVersion: v1: want apps/v1",
		"{apiVersion: karpenter.hs/v1, kind: NodePool}":                 "apiVersion: karpenter.hs/v1: want karpenter.sh/v1 or karpenter.sh/v1beta1",
		"{apiVersion: heliostat.dev/v1, kind: CapacityPolicy}":          "apiVersion: heliostat.dev/v1: want heliostat.dev/v1alpha1",
		"{apiVersion: ray.io/v1alpha1, kind: RayCluster}":               "",
		"{apiVersion: v1, kind: ConfigMap}":                             "",
		"{apiVersion: batch/v1, kind: CronJob}":                         "",
		"{apiVersion: longhorn.io/v1beta2, kind: Node}":                 "",
		"{apiVersion: hypershift.openshift.io/v1beta1, kind: NodePool}": "",
		"{apiVersion: rds.example.com/v1, kind: RDSCluster}":            "",
		"{kind: Node}": "",
	} {
		got := ""
		o := object(t, text)
		for _, f := range append(unknownKind(o), unknownVersion(o)...) {
			got += f.Path.String() + ": " + f.Seen + ": want " + f.More
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestWhatBreaksTheSchemaIsNamedWithItsValueAndWhatIsRight(t *testing.T) {
	const request = "{apiVersion: heliostat.dev/v1alpha1, kind: ResourceRequest, metadata: {name: a, labels: {x: y}}, "
	const policy = "{apiVersion: heliostat.dev/v1alpha1, kind: CapacityPolicy, metadata: {name: a}, "
	for text, want := range map[string][]string{
		request + "spec: {rayCluster: llm, owner: ann, leaseSeconds: 60, bundles: [{resources: {GPU: 0.5}, slice: {memory: 10Gi}}]}}": nil,
		request + "spec: {rayCluster: llm, owner: ann, leaseSeconds: -1, prio: 3, bundles: [{resources: {GPU: 1}}]}}": {
			"spec.leaseSeconds: -1: want a whole number from 1 to 31536000", "spec.prio: 3: want priority"},
		request + `spec: {rayCluster: LLM, owner: ann, leaseSeconds: "60", bundles: [{resources: {GPU: -1}, count: 0, slice: {isolation: hard}}]}}`: {
			"spec.bundles[0].count: 0: want a whole number from 1 to 10000",
			"spec.bundles[0].resources.GPU: -1: want a number from 0 to 109951162777600",
			`spec.bundles[0].slice.isolation: "hard": want one of hardware, limit, any`,
			`spec.leaseSeconds: "60": want a whole number from 1 to 31536000`,
			`spec.rayCluster: "LLM": want a text of 1 to 253 characters that matches ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`},
		request + "spec: {rayCluster: llm, owner: ann, leaseSeconds: 60, bundles: []}}": {"spec.bundles: []: want a list of 1 to 10 elements"},
		request + "spec: {rayCluster: llm, owner: ann, holdUntilDeleted: true}}":        {"spec.bundles: missing: want a list of 1 to 10 elements"},
		request + "specs: {}}": {"specs: {}: want spec", "spec: missing: want an object"},
		request + "spec: {rayCluster: llm, owner: ann, leaseSeconds: 60, renewTime: soon, bundles: [{resources: {GPU: 1}}]}}": {
			`spec.renewTime: "soon": want a time such as 2026-01-31T08:00:00Z`},
		request + "spec: {rayCluster: llm, owner: ann, bundles: [{resources: {GPU: 1}}]}}": {
			"spec: neither leaseSeconds nor holdUntilDeleted: true: want one of leaseSeconds and holdUntilDeleted: true"},
		request + "spec: {rayCluster: llm, owner: ann, leaseSeconds: 1, holdUntilDeleted: true, bundles: [{resources: {GPU: 1}}]}}": {
			"spec: both leaseSeconds and holdUntilDeleted: true: want one of leaseSeconds and holdUntilDeleted: true"},
		policy + "spec: {rayCluster: llm, keepWarm: [{group: a, count: 1}]}}":            nil,
		policy + "spec: {rayCluster: llm, keepWarm: [{group: a, count: 1, grup: b}]}}":   {"spec.keepWarm[0].grup: \"b\": want group"},
		policy + "spec: {rayCluster: llm, keepWarm: [{group: a, count: 1}]}, stats: {}}": {"stats: {}: want status"},
	} {
		var got []string
		for _, f := range violations(object(t, text)) {
			got = append(got, f.Path.String()+": "+f.Seen+": want "+f.More)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestSkippedObjectsAreCountedByKind(t *testing.T) {
	var objects []Object
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap}", "{apiVersion: v1, kind: Service}", "{apiVersion: v1, kind: Service}",
		"{apiVersion: longhorn.io/v1beta2, kind: Node}", "{apiVersion: v1, kind: Node}", "{apiVersion: ray.io/v1, kind: RayClsuter}",
	} {
		objects = append(objects, *object(t, text))
	}
	want := map[string]int{"ConfigMap": 1, "Service": 2, "Node.longhorn.io": 1}
	if diff := cmp.Diff(want, Skipped(Input{Objects: objects})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
