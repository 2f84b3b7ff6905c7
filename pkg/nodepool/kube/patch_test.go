package kube

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const twoScaled = `
metadata: {uid: u-1, generation: 7, annotations: {heliostat.dev/mode: managed}}
spec:
  workerGroupSpecs:
  - {groupName: cpu, replicas: 2, minReplicas: 0, maxReplicas: 5}
  - {groupName: gpu, scaleStrategy: {workersToDelete: []}}
`

// queuedCluster has two groups, with what a test puts into the metadata.
func queuedCluster(t *testing.T, metadata string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: objectOf(t, `
metadata: {namespace: ml, name: llm, uid: u-1, resourceVersion: "8", `+metadata+`}
spec: {workerGroupSpecs: [{groupName: cpu, replicas: 2, maxReplicas: 5}, {groupName: gpu, replicas: 0, maxReplicas: 5}]}
`)}
}

// Gates belong to other controllers (kuberay #5094), and one may come between the reading and the patch.
func TestAPatchLeavesGatesAsTheyAre(t *testing.T) {
	gated := objectOf(t, strings.Replace(twoScaled, "workersToDelete: []", "scaleGate: [{name: kueue.k8s.io/quota-exceeded}]", 1))
	text, err := scalePatch(gated, nodepool.Change{UID: "u-1", Generation: 7, Targets: []nodepool.Target{
		{Group: "gpu", Index: 1, From: 0, Replicas: 0, WorkersToDelete: []string{"w-1"}}}})
	must(t, err)
	patch, err := jsonpatch.DecodePatch(text)
	must(t, err)
	before, err := json.Marshal(gated)
	must(t, err)
	after, err := patch.Apply(before)
	must(t, err)
	const want = `"scaleStrategy":{"scaleGate":[{"name":"kueue.k8s.io/quota-exceeded"}],"workersToDelete":["w-1"]}`
	if !strings.Contains(string(after), want) {
		t.Errorf("%s lacks %s", after, want)
	}
}

func TestAChangeIsOneGuardedPatch(t *testing.T) {
	change := nodepool.Change{UID: "u-1", Generation: 7, Targets: []nodepool.Target{
		{Group: "cpu", Index: 0, From: 2, Replicas: 1, WorkersToDelete: []string{"w-1"}},
		{Group: "gpu", Index: 1, From: 0, Replicas: 4, WorkersToDelete: []string{}},
	}}
	want := `[
{"op":"test","path":"/metadata/uid","value":"u-1"},
{"op":"test","path":"/metadata/deletionTimestamp","value":null},
{"op":"test","path":"/spec/suspend","value":null},
{"op":"test","path":"/metadata/labels","value":null},
{"op":"test","path":"/metadata/ownerReferences","value":null},
{"op":"test","path":"/metadata/annotations/heliostat.dev~1freeze","value":null},
{"op":"test","path":"/metadata/annotations/heliostat.dev~1mode","value":"managed"},
{"op":"test","path":"/metadata/generation","value":7},
{"op":"test","path":"/spec/workerGroupSpecs/0/groupName","value":"cpu"},
{"op":"test","path":"/spec/workerGroupSpecs/0/replicas","value":2},
{"op":"test","path":"/spec/workerGroupSpecs/0/minReplicas","value":0},
{"op":"test","path":"/spec/workerGroupSpecs/0/maxReplicas","value":5},
{"op":"test","path":"/spec/workerGroupSpecs/1/groupName","value":"gpu"},
{"op":"test","path":"/spec/workerGroupSpecs/1/replicas","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/1/minReplicas","value":null},
{"op":"test","path":"/spec/workerGroupSpecs/1/maxReplicas","value":null},
{"op":"add","path":"/spec/workerGroupSpecs/0/replicas","value":1},
{"op":"add","path":"/spec/workerGroupSpecs/0/scaleStrategy","value":{"workersToDelete":["w-1"]}},
{"op":"add","path":"/spec/workerGroupSpecs/1/replicas","value":4},
{"op":"add","path":"/spec/workerGroupSpecs/1/scaleStrategy/workersToDelete","value":[]}]`
	got, err := scalePatch(objectOf(t, twoScaled), change)
	must(t, err)
	if diff := cmp.Diff(strings.ReplaceAll(want, "\n", ""), string(got)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestFreezeIsTestedForAbsenceWithoutAnyAnnotation(t *testing.T) {
	patch, err := scalePatch(objectOf(t, strings.Replace(twoScaled, ", annotations: {heliostat.dev/mode: managed}", "", 1)), nodepool.Change{UID: "u-1"})
	must(t, err)
	if want := `{"op":"test","path":"/metadata/annotations","value":null}`; !strings.Contains(string(patch), want) {
		t.Errorf("patch %s lacks %s", patch, want)
	}
}

func TestAChangeThatDoesNotFitIsAConflict(t *testing.T) {
	tests := map[string]nodepool.Change{
		"another uid":      {UID: "u-0"},
		"another index":    {UID: "u-1", Targets: []nodepool.Target{{Group: "gpu", Index: 0, From: 2}}},
		"an index too far": {UID: "u-1", Targets: []nodepool.Target{{Group: "gpu", Index: 2}}},
		"a negative index": {UID: "u-1", Targets: []nodepool.Target{{Group: "gpu", Index: -1}}},
		"names from another spec": {UID: "u-1", Generation: 6, Targets: []nodepool.Target{
			{Group: "cpu", Index: 0, From: 2, Replicas: 1, WorkersToDelete: []string{"w-1"}}}},
		"other replicas": {UID: "u-1", Targets: []nodepool.Target{{Group: "cpu", Index: 0, From: 3}}},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := scalePatch(objectOf(t, twoScaled), change); !errors.Is(err, nodepool.ErrConflict) {
				t.Errorf("error is %v, want ErrConflict", err)
			}
		})
	}
}

func TestGrowthIsWrittenToASpecThatOthersHaveEditedElsewhere(t *testing.T) {
	patch, err := scalePatch(objectOf(t, twoScaled), nodepool.Change{UID: "u-1", Generation: 6, Targets: []nodepool.Target{
		{Group: "cpu", Index: 0, From: 2, Replicas: 3}, {Group: "gpu", Index: 1, Replicas: 1, WorkersToDelete: []string{}}}})
	if err != nil || strings.Contains(string(patch), "generation") {
		t.Errorf("patch is %s, %v; want none of the tests that naming a pod needs", patch, err)
	}
}

// Whether replicas may change depends on the gates in all templates, so the spec must be the one that was read.
func TestAPatchOfAQueuedRayClusterTestsItsGeneration(t *testing.T) {
	change := nodepool.Change{UID: "u-1", Generation: 7, Targets: []nodepool.Target{{Group: "cpu", From: 2, Replicas: 3}}}
	for metadata, want := range map[string]bool{
		"generation: 7": false, "generation: 7, labels: {kueue.x-k8s.io/queue-name: research}": true,
	} {
		patch, err := scalePatch(queuedCluster(t, metadata).Object, change)
		must(t, err)
		if got := strings.Contains(string(patch), `{"op":"test","path":"/metadata/generation","value":7}`); got != want {
			t.Errorf("%s: tests the generation %t, want %t: %s", metadata, got, want, patch)
		}
	}
	stale := queuedCluster(t, "generation: 8, labels: {kueue.x-k8s.io/queue-name: research}").Object
	if _, err := scalePatch(stale, change); !errors.Is(err, nodepool.ErrConflict) {
		t.Errorf("an older generation: %v, want a conflict", err)
	}
}

// The API server compares an absent field with null, so that a label that somebody adds meanwhile fails the patch.
func TestAPatchTestsThatNobodyHasQueuedTheRayCluster(t *testing.T) {
	for metadata, want := range map[string]string{
		"labels: {a: b}":  `{"op":"test","path":"/metadata/labels/kueue.x-k8s.io~1queue-name","value":null}`,
		"annotations: {}": `{"op":"test","path":"/metadata/labels","value":null}`,
		"ownerReferences: [{kind: RayJob, name: j}]": `{"op":"test","path":"/metadata/ownerReferences","value":[{"kind":"RayJob","name":"j"}]}`,
	} {
		object := queuedCluster(t, metadata).Object
		scale, err := scalePatch(object, nodepool.Change{UID: "u-1", Targets: []nodepool.Target{{Group: "cpu",
			From: 2, Replicas: 3}}})
		must(t, err)
		sync, err := numGPUsPatch(object, nodepool.NumGPUsChange{UID: "u-1"})
		must(t, err)
		for _, patch := range []string{string(scale), string(sync)} {
			if !strings.Contains(patch, want) {
				t.Errorf("%s: patch %s lacks %s", metadata, patch, want)
			}
		}
	}
}

func TestAPatchOfAShardTestsTheTermThatWasReadAndWritesItsOwn(t *testing.T) {
	change := nodepool.Change{UID: "u-1", Targets: []nodepool.Target{{Group: "cpu", From: 2, Replicas: 3}}}
	change.Term = "heliostat-b.3"
	sync := nodepool.NumGPUsChange{UID: "u-1", Generation: 7, Term: "heliostat-b.3"}
	const path = `"path":"/metadata/annotations/heliostat.dev~1shard","value":`
	for name, test := range map[string]struct{ manifest, test, write string }{
		"first": {twoScaled, `{"op":"test",` + path + `null}`, `{"op":"add",` + path + `"heliostat-b.3"}`},
		"after another": {
			strings.Replace(twoScaled, "heliostat.dev/mode", "heliostat.dev/shard: heliostat-a.7, heliostat.dev/mode", 1),
			`{"op":"test",` + path + `"heliostat-a.7"}`, `{"op":"add",` + path + `"heliostat-b.3"}`,
		},
		"without annotations": {
			strings.Replace(twoScaled, ", annotations: {heliostat.dev/mode: managed}", "", 1),
			`{"op":"test","path":"/metadata/annotations","value":null}`,
			`{"op":"add","path":"/metadata/annotations","value":{"heliostat.dev/shard":"heliostat-b.3"}}`,
		},
	} {
		object := objectOf(t, test.manifest)
		scale, err := scalePatch(object, change)
		must(t, err)
		numbers, err := numGPUsPatch(object, sync)
		must(t, err)
		for _, patch := range []string{string(scale), string(numbers)} {
			if at := strings.Index(patch, test.test); at < 0 || at > strings.Index(patch, test.write) {
				t.Errorf("%s: %s\nwant %s and then %s", name, patch, test.test, test.write)
			}
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
