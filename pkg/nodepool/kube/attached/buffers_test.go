package attached

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// bufferedCluster has one group whose pods say what matters to nodes, and more.
func bufferedCluster(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	err := json.Unmarshal([]byte(`{
		"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": {"namespace": "ml", "name": "llm", "uid": "uid"},
		"spec": {"workerGroupSpecs": [{"groupName": "cpu"}, {"groupName": "gpu", "template": {
			"metadata": {"labels": {"team": "a"}, "annotations": {"device": "x"}, "name": "left out"},
			"spec": {
				"nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "gpu"}], "affinity": {"nodeAffinity": {}},
				"schedulingGates": [{"name": "kueue"}], "nodeName": "n", "serviceAccountName": "s",
				"volumes": [{"name": "secret", "secret": {}}, {"name": "disk", "persistentVolumeClaim": {"claimName": "d"}}],
				"initContainers": [{"name": "init", "image": "i", "env": [{"name": "KEY"}]}],
				"containers": [{
					"name": "worker", "image": "ray", "command": ["ray"], "env": [{"name": "TOKEN", "value": "secret"}],
					"ports": [{"containerPort": 1}, {"containerPort": 2}],
					"resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "4"}}}]}}}]}}`), &object)
	if err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{Object: object}
	ports, _ := object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[1].(map[string]any)
	container := ports["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["ports"].([]any)[1].(map[string]any)["hostPort"] = int64(80)
	return made
}

func TestATemplateSaysWhatAWorkerAsksOfItsNodeAndNothingElse(t *testing.T) {
	pods, _, err := podTemplate(bufferedCluster(t), "gpu", map[string]string{"ray.io/group": "gpu"})
	if err != nil {
		t.Fatal(err)
	}
	if owners := pods.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "uid" {
		t.Errorf("owners %v", owners)
	}
	want := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"team": "a", "ray.io/group": "gpu"},
			"annotations": map[string]any{"device": "x"}},
		"spec": map[string]any{
			"nodeSelector": map[string]any{"pool": "gpu"}, "tolerations": []any{map[string]any{"key": "gpu"}},
			"affinity":       map[string]any{"nodeAffinity": map[string]any{}},
			"initContainers": []any{map[string]any{"name": "init", "image": "i", "resources": map[string]any{}}},
			"volumes": []any{map[string]any{"name": "disk",
				"persistentVolumeClaim": map[string]any{"claimName": "d"}}},
			"containers": []any{map[string]any{"name": "worker", "image": "ray",
				"ports": []any{map[string]any{"containerPort": int64(2), "hostPort": int64(80)}},
				"resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1"},
					"requests": map[string]any{"cpu": "4"}}}},
		},
	}
	if diff := cmp.Diff(want, pods.Object["template"]); diff != "" {
		t.Error(diff)
	}
	if _, _, err := podTemplate(bufferedCluster(t), "tpu", nil); !errors.Is(err, nodepool.ErrConflict) {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestWhatTheNodeAutoscalerSays(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: reason}
	}
	for _, c := range []struct {
		name             string
		conditions       []metav1.Condition
		provided, broken bool
		answer           string
	}{
		{"nothing yet", nil, false, false, ""},
		{"resolved, and no more is ever said", []metav1.Condition{condition(resolved, "True", "Resolved")}, true, false,
			"Resolved"},
		{"nodes are missing", []metav1.Condition{condition(resolved, "True", "Resolved"),
			condition(provisioned, "False", "RequiresNewCapacity")}, false, false, "RequiresNewCapacity"},
		{"nodes are launched", []metav1.Condition{condition(provisioned, "True", "FitsExistingCapacity"),
			condition(resolved, "True", "Resolved")}, true, false, "FitsExistingCapacity"},
		{"the PodTemplate is gone", []metav1.Condition{condition(resolved, "False", "PodTemplateNotFound"),
			condition(provisioned, "True", "FitsExistingCapacity")}, false, true, "FitsExistingCapacity"},
	} {
		var b nodepool.Buffer
		judgeBuffer(&b, c.conditions)
		if b.Provided != c.provided || b.Broken != c.broken || b.Answer != c.answer {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}

// oneServed serves the kinds of one version.
type oneServed struct {
	discovery.ServerResourcesInterface
	version, resource string
}

func (s oneServed) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if version != autoscalingGroup+"/"+s.version {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: s.resource}}}, nil
}

var bufferKind = schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1beta1", Resource: bufferResource}

// bufferWriter writes to an API server that has these objects and stores what is applied.
func bufferWriter(objects ...runtime.Object) (*Buffers, *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{bufferKind: "CapacityBufferList", templates: "PodTemplateList"}, objects...)
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(patch.Patch, &object.Object); err != nil {
			return true, nil, err
		}
		object.SetUID("made")
		err := client.Tracker().Create(patch.Resource, object, patch.Namespace)
		if apierrors.IsAlreadyExists(err) {
			err = client.Tracker().Update(patch.Resource, object, patch.Namespace)
		}
		return true, object, err
	})
	return NewBuffers(Config{Client: client, Discovery: oneServed{version: "v1beta1", resource: bufferResource},
		Logger: slog.New(slog.DiscardHandler), Changed: func(nodepool.ClusterKey) {}}), client
}

var askedBuffer = nodepool.Buffer{Name: "heliostat-nodes-1", Group: "gpu", Pods: 2}

func TestABufferIsReadAsItWasWritten(t *testing.T) {
	w, client := bufferWriter()
	labels := map[string]string{"ray.io/group": "gpu"}
	if err := w.Keep(t.Context(), bufferedCluster(t), labels, askedBuffer); err != nil {
		t.Fatal(err)
	}
	object, err := client.Resource(bufferKind).Namespace("ml").Get(t.Context(), askedBuffer.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Store("").ReplaceAll([]*unstructured.Unstructured{object}, "")
	cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid",
		Groups: []nodepool.WorkerGroup{{Name: "gpu", Pod: landing.PodShape{}}},
		Policy: &capacity.Written{Policy: capacity.Policy{KeepWarmNodes: []capacity.WarmNodes{{Group: "gpu", Count: 2}}}}}
	cluster.Groups[0].Pod.Neighbors.Labels = labels
	w.AddTo(&cluster, bufferedCluster(t))
	known := cluster.Buffers
	if len(known.List) != 1 || known.List[0].Pods != 2 || known.List[0].Group != "gpu" || known.Unread != "" {
		t.Fatalf("%+v", known)
	}
	if known.Templates["gpu"] == "" || known.List[0].Template != known.Templates["gpu"] {
		t.Errorf("written from template %q, which is now %q: it would be written again", known.List[0].Template,
			known.Templates["gpu"])
	}
	changed := bufferedCluster(t)
	groups, _, _ := unstructured.NestedSlice(changed.Object, "spec", "workerGroupSpecs")
	_ = unstructured.SetNestedField(groups[1].(map[string]any), "big", "template", "spec", "nodeSelector", "pool")
	_ = unstructured.SetNestedSlice(changed.Object, groups, "spec", "workerGroupSpecs")
	w.AddTo(&cluster, changed)
	if cluster.Buffers.Templates["gpu"] == known.Templates["gpu"] {
		t.Error("another node selector is not noticed")
	}
	cluster.UID = "of another RayCluster"
	if w.AddTo(&cluster, changed); len(cluster.Buffers.List) != 0 {
		t.Error("the buffer of a former RayCluster counts")
	}
	if err := w.Remove(t.Context(), bufferedCluster(t), known.List[0]); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionResource{bufferKind, templates} {
		if _, err := client.Tracker().Get(kind, "ml", askedBuffer.Name); !apierrors.IsNotFound(err) {
			t.Errorf("%s is left: %v", kind.Resource, err)
		}
	}
}

func TestUntilTheFirstListBuffersAreUnknownAndNotMissing(t *testing.T) {
	w, _ := bufferWriter()
	cluster := nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid"}
	if w.AddTo(&cluster, bufferedCluster(t)); cluster.Buffers.Unread == "" || cluster.Buffers.Missing != "" {
		t.Errorf("before the first list: %+v", cluster.Buffers)
	}
	w.Unread("", "forbidden")
	if w.AddTo(&cluster, bufferedCluster(t)); cluster.Buffers.Unread != "" || cluster.Buffers.Missing != "forbidden" {
		t.Errorf("without the right to read: %+v", cluster.Buffers)
	}
}

func TestABufferThatIsBeingDeletedSaysSo(t *testing.T) {
	object := buffer(bufferedCluster(t), "v1beta1", askedBuffer)
	if b, ok := readBuffer(object); !ok || b.Value.Deleting {
		t.Errorf("%+v, %t", b, ok)
	}
	now := metav1.Now()
	object.SetDeletionTimestamp(&now)
	if b, ok := readBuffer(object); !ok || !b.Value.Deleting {
		t.Errorf("%+v, %t", b, ok)
	}
}

// A buffer of the same name that was made again since the read must not be changed, and what others wrote to the
// fields of this one does not prevent the change.
func TestAChangeIsOfTheVeryObjectThatWasRead(t *testing.T) {
	w, client := bufferWriter()
	if err := w.Keep(t.Context(), bufferedCluster(t), nil, askedBuffer); err != nil {
		t.Fatal(err)
	}
	client.ClearActions()
	more := askedBuffer
	more.Pods = 3
	if err := w.Keep(t.Context(), bufferedCluster(t), nil, more); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, action := range client.Actions() {
		patch, is := action.(clienttesting.PatchActionImpl)
		if !is {
			continue
		}
		changed++
		force := patch.PatchOptions.Force
		if !strings.Contains(string(patch.Patch), `"uid":"made"`) || force == nil || !*force {
			t.Errorf("%s: force %v, %s", patch.Resource.Resource, force, patch.Patch)
		}
	}
	if changed != 2 {
		t.Errorf("%d patches, want one of the PodTemplate and one of the buffer", changed)
	}
	made := more
	made.UID = "made"
	client.ClearActions()
	if err := w.Remove(t.Context(), bufferedCluster(t), made); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		if del, is := action.(clienttesting.DeleteActionImpl); is {
			if p := del.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "made" {
				t.Errorf("%s is deleted without its uid: %+v", del.Resource.Resource, p)
			}
		}
	}
}

func TestWhatSomebodyElseMadeIsNotTouched(t *testing.T) {
	for _, kind := range []schema.GroupVersionResource{bufferKind, templates} {
		foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(9)}}}
		foreign.SetAPIVersion(kind.GroupVersion().String())
		foreign.SetKind(map[string]string{bufferResource: "CapacityBuffer", "podtemplates": "PodTemplate"}[kind.Resource])
		foreign.SetNamespace("ml")
		foreign.SetName(askedBuffer.Name)
		foreign.SetLabels(map[string]string{madeLabel: madeBy}) // a ProvisioningRequest of Heliostat has it too
		w, client := bufferWriter(foreign)
		if err := w.Keep(t.Context(), bufferedCluster(t), nil, askedBuffer); !errors.Is(err, errForeign) {
			t.Errorf("%s: error %v", kind.Resource, err)
		}
		if kind == templates {
			if err := w.Remove(t.Context(), bufferedCluster(t), askedBuffer); err != nil {
				t.Errorf("%s: error %v", kind.Resource, err)
			}
		}
		if _, err := client.Tracker().Get(kind, "ml", askedBuffer.Name); err != nil {
			t.Errorf("%s: %v", kind.Resource, err)
		}
	}
}

func TestAVersionWithoutCapacityBuffersDoesNotCount(t *testing.T) {
	w, _ := bufferWriter()
	w.kind.Served.Discovery = oneServed{version: "v1beta1", resource: "provisioningrequests"}
	if version, err := w.kind.Served.Version(); !apierrors.IsNotFound(err) {
		t.Errorf("version %q, error %v", version, err)
	}
	w.kind.Served.Discovery = oneServed{version: "v1alpha1", resource: bufferResource}
	if version, err := w.kind.Served.Version(); version != "v1alpha1" || err != nil {
		t.Errorf("version %q, error %v", version, err)
	}
}
