package doctor

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// cluster is a RayCluster with one group.
func cluster() *Object {
	group := map[string]any{"groupName": "a100", "replicas": int64(3), "tolerations": []any{"a", "b", "c"}}
	return &Object{Kind: "RayCluster", Namespace: "ml", Name: "llm", Fields: map[string]any{
		"spec": map[string]any{"workerGroupSpecs": []any{group}},
	}}
}

var first = fieldpath.NewPath("spec", "workerGroupSpecs").Index(0)

func TestFixIsACommandThatSaysWhatItChanges(t *testing.T) {
	o, options := cluster(), fieldpath.NewPath("spec", "autoscalerOptions")
	for want, f := range map[string]fix{
		`kubectl edit raycluster llm -n ml  # set spec.workerGroupSpecs[0].replicas to 1; a`:                      set(first.Key("replicas"), 1).Hint("a"),
		`kubectl edit raycluster llm -n ml  # remove spec.workerGroupSpecs[0].replicas; set spec.a["b.c"] to "d"`: patch(change{first.Key("replicas"), nil}, change{fieldpath.NewPath("spec", "a", "b.c"), "d"}),
		`kubectl patch raycluster llm -n ml --type=merge -p '{"spec":{"autoscalerOptions":{"args":null,"image":"i"}}}' && true  # a; b`: patch(change{options.Key("image"), "i"},
			change{options.Key("args"), nil}).Then("true").Hint("a").Hint("b"),
		`kubectl edit raycluster llm -n ml  # why`: edit("why"),
	} {
		if got := f.text(o); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestQuoteMakesOneWordForAShell(t *testing.T) {
	for text, want := range map[string]string{
		"llm": "llm", "spec.nodeName=gpu-1": "spec.nodeName=gpu-1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'",
	} {
		if got := quote(text); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

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

func TestAKindThatIsNotServedIsReported(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: ray.io/v1, kind: RayClsuter}":                     "kind: RayClsuter: want RayCluster",
		"{apiVersion: ray.io/v1, kind: raycluster}":                     "kind: raycluster: want RayCluster",
		"{apiVersion: heliostat.dev/v1alpha1, kind: Policy}":            "kind: Policy: want one of CapacityPolicy, ResourceRequest",
		"{apiVersion: ray.io/v9, kind: RayCluster}":                     "apiVersion: ray.io/v9: want ray.io/v1 or ray.io/v1alpha1",
		"{apiVersion: v1, kind: RayCluster}":                            "apiVersion: v1: want ray.io/v1 or ray.io/v1alpha1",
		"{kind: RayJob}":                                                "apiVersion: missing: want ray.io/v1 or ray.io/v1alpha1",
		"{apiVersion: heliostat.dev/v1, kind: CapacityPolicy}":          "apiVersion: heliostat.dev/v1: want heliostat.dev/v1alpha1",
		"{apiVersion: ray.io/v1alpha1, kind: RayCluster}":               "",
		"{apiVersion: v1, kind: ConfigMap}":                             "",
		"{apiVersion: hypershift.openshift.io/v1beta1, kind: NodePool}": "",
		"{kind: Node}": "",
	} {
		got := ""
		for _, f := range unknownKind(object(t, text)) {
			got += f.Path.String() + ": " + f.Seen + ": " + f.More
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
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
	if diff := gocmp.Diff(want, Skipped(Input{Objects: objects})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
