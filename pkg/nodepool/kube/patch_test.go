package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

func objectOf(t *testing.T, manifest string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

const twoGroups = `
metadata: {uid: u-1, generation: 7, annotations: {heliostat.dev/mode: managed}}
spec:
  workerGroupSpecs:
  - {groupName: cpu, replicas: 2, minReplicas: 0, maxReplicas: 5}
  - {groupName: gpu, scaleStrategy: {workersToDelete: []}}
`

func TestAChangeIsOneGuardedPatch(t *testing.T) {
	change := nodepool.Change{Cluster: llm, UID: "u-1", Generation: 7, Targets: []nodepool.Target{
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
{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":1},
{"op":"add","path":"/spec/workerGroupSpecs/0/scaleStrategy","value":{"workersToDelete":["w-1"]}},
{"op":"add","path":"/spec/workerGroupSpecs/1/replicas","value":4},
{"op":"replace","path":"/spec/workerGroupSpecs/1/scaleStrategy","value":{"workersToDelete":[]}}]`
	got, err := patchFor(objectOf(t, twoGroups), change)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(want, "\n", ""), string(got)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestFreezeIsTestedForAbsenceWithoutAnyAnnotation(t *testing.T) {
	patch, err := patchFor(objectOf(t, strings.Replace(twoGroups, ", annotations: {heliostat.dev/mode: managed}", "", 1)), nodepool.Change{UID: "u-1"})
	if err != nil {
		t.Fatal(err)
	}
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
			if _, err := patchFor(objectOf(t, twoGroups), change); !errors.Is(err, nodepool.ErrConflict) {
				t.Errorf("error is %v, want ErrConflict", err)
			}
		})
	}
}

func TestGrowthIsWrittenToASpecThatOthersHaveEditedElsewhere(t *testing.T) {
	patch, err := patchFor(objectOf(t, twoGroups), nodepool.Change{UID: "u-1", Generation: 6, Targets: []nodepool.Target{
		{Group: "cpu", Index: 0, From: 2, Replicas: 3}, {Group: "gpu", Index: 1, Replicas: 1, WorkersToDelete: []string{}}}})
	if err != nil || strings.Contains(string(patch), "generation") {
		t.Errorf("patch is %s, %v; want none of the tests that naming a pod needs", patch, err)
	}
}

func version(v string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace(llm.Namespace)
	u.SetName(llm.Name)
	u.SetResourceVersion(v)
	return u
}

func TestReadsAreNeverOlderThanOwnWrites(t *testing.T) {
	tests := []struct {
		name            string
		cached          *unstructured.Unstructured
		raised          []string
		want, wantAgain string // the second read finds the cache at version 200
	}{
		{"nothing written", version("99"), nil, "99", "200"},
		{"the cache lags", version("99"), []string{"100"}, "100", "200"},
		{"the cache lags by digits", version("99"), []string{"1000"}, "1000", "1000"},
		{"the cache has caught up", version("100"), []string{"100"}, "100", "200"},
		{"the cache is ahead", version("101"), []string{"100"}, "101", "200"},
		{"an answer that arrives late does not lower the floor", version("99"), []string{"120", "110"}, "120", "200"},
		{"versions that are no numbers are not compared", version("abc"), []string{"100"}, "abc", "200"},
		{"the cluster is gone", nil, []string{"100"}, "", "200"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newNewestObjects()
			for _, v := range test.raised {
				f.remember(version(v))
			}
			got := ""
			if object := f.newer(llm, test.cached); object != nil {
				got = object.GetResourceVersion()
			}
			again := f.newer(llm, version("200")).GetResourceVersion()
			if got != test.want || again != test.wantAgain {
				t.Errorf("read %q and then %q, want %q and %q", got, again, test.want, test.wantAgain)
			}
		})
	}
}

func TestAnObjectIsDecodedOncePerVersion(t *testing.T) {
	m := newDecodeCache(nodegpu.Reader{})
	first := m.decode(version("1"))
	first.Object["mark"] = true
	if m.decode(version("1")).Object["mark"] == nil {
		t.Error("the same version was decoded again")
	}
	if m.decode(version("2")).Object["mark"] != nil {
		t.Error("a new version was not decoded")
	}
	if m.drop(llm); len(m.byKey) != 0 {
		t.Error("a dropped cluster is kept")
	}
}

// Whether replicas may change depends on the gates in all templates, so the spec must be the one that was read.
func TestAPatchOfAQueuedRayClusterTestsItsGeneration(t *testing.T) {
	change := nodepool.Change{UID: "u-1", Generation: 7, Targets: []nodepool.Target{{Group: "cpu", From: 2, Replicas: 3}}}
	for metadata, want := range map[string]bool{
		"generation: 7": false, "generation: 7, labels: {kueue.x-k8s.io/queue-name: research}": true,
	} {
		patch, err := patchFor(queuedCluster(t, metadata).Object, change)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(patch), `{"op":"test","path":"/metadata/generation","value":7}`); got != want {
			t.Errorf("%s: tests the generation %t, want %t: %s", metadata, got, want, patch)
		}
	}
	stale := queuedCluster(t, "generation: 8, labels: {kueue.x-k8s.io/queue-name: research}").Object
	if _, err := patchFor(stale, change); !errors.Is(err, nodepool.ErrConflict) {
		t.Errorf("an older generation: %v, want a conflict", err)
	}
}

// A webhook that does not answer has nothing to do with the RayCluster, and the loop tries again soon.
func TestAWebhookThatDoesNotAnswerIsRecognized(t *testing.T) {
	down := apierrors.NewInternalError(errors.New(`failed calling webhook "vraycluster.kb.io": connection refused`))
	if err := classified(down); !errors.Is(err, nodepool.ErrWebhook) {
		t.Errorf("%v", err)
	}
	if err := classified(apierrors.NewInternalError(errors.New("etcd"))); errors.Is(err, nodepool.ErrWebhook) {
		t.Errorf("%v", err)
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
		scale, err := patchFor(object, nodepool.Change{UID: "u-1", Targets: []nodepool.Target{{Group: "cpu",
			From: 2, Replicas: 3}}})
		if err != nil {
			t.Fatal(err)
		}
		sync, err := numGPUsPatch(object, nodepool.NumGPUsChange{UID: "u-1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, patch := range []string{string(scale), string(sync)} {
			if !strings.Contains(patch, want) {
				t.Errorf("%s: patch %s lacks %s", metadata, patch, want)
			}
		}
	}
}

func TestAPatchOfAShardTestsTheTermThatWasReadAndWritesItsOwn(t *testing.T) {
	change := oneMore
	change.Term = "heliostat-b.3"
	sync := nodepool.NumGPUsChange{UID: "u-1", Generation: 7, Term: "heliostat-b.3"}
	const path = `"path":"/metadata/annotations/heliostat.dev~1shard","value":`
	for name, test := range map[string]struct{ manifest, test, write string }{
		"first": {twoGroups, `{"op":"test",` + path + `null}`, `{"op":"add",` + path + `"heliostat-b.3"}`},
		"after another": {
			strings.Replace(twoGroups, "heliostat.dev/mode", "heliostat.dev/shard: heliostat-a.7, heliostat.dev/mode", 1),
			`{"op":"test",` + path + `"heliostat-a.7"}`, `{"op":"add",` + path + `"heliostat-b.3"}`,
		},
		"without annotations": {
			strings.Replace(twoGroups, ", annotations: {heliostat.dev/mode: managed}", "", 1),
			`{"op":"test","path":"/metadata/annotations","value":null}`,
			`{"op":"add","path":"/metadata/annotations","value":{"heliostat.dev/shard":"heliostat-b.3"}}`,
		},
	} {
		object := objectOf(t, test.manifest)
		scale, err := patchFor(object, change)
		if err != nil {
			t.Fatal(err)
		}
		numbers, err := numGPUsPatch(object, sync)
		if err != nil {
			t.Fatal(err)
		}
		for _, patch := range []string{string(scale), string(numbers)} {
			if at := strings.Index(patch, test.test); at < 0 || at > strings.Index(patch, test.write) {
				t.Errorf("%s: %s\nwant %s and then %s", name, patch, test.test, test.write)
			}
		}
	}
}
