package kube

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/kueue"
)

// ofTrain is a RayCluster of the RayJob train.
const ofTrain = `
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  {namespace: ml, name: llm, uid: u-1, resourceVersion: "8", ownerReferences: [
    {apiVersion: ray.io/v1, kind: RayJob, name: train, uid: uid-of-train, controller: true}]}
spec:
  headGroupSpec: {template: {}}
  workerGroupSpecs:
  - {groupName: cpu, replicas: 2, minReplicas: 0, maxReplicas: 5, template: {}}
  - {groupName: gpu, replicas: 0, minReplicas: 0, maxReplicas: 5, template: {}}
`

var rayJobs = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}

// rayJob is the RayJob train.
func rayJob(queue string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "ray.io/v1", Kind: "RayJob"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "uid-of-train",
			Labels: map[string]string{nodepool.QueueLabel: queue}}}
}

// household is what knows of owners, with the API server that it reads.
type household struct {
	*kueue.Owners
	client  *metadatafake.FakeMetadataClient
	changed []nodepool.ClusterKey
}

func newHousehold(t *testing.T, job *metav1.PartialObjectMetadata) *household {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	h := &household{client: metadatafake.NewSimpleMetadataClient(scheme)}
	must(t, h.client.Tracker().Create(rayJobs, job, "ml"))
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}, meta.RESTScopeNamespace)
	h.Owners = kueue.NewOwners(h.client, nil, kinds, slog.New(slog.DiscardHandler),
		func(key nodepool.ClusterKey) { h.changed = append(h.changed, key) })
	return h
}

func (h *household) reads() int { return len(h.client.Actions()) }

// childManager writes to server, for a RayCluster of the RayJob train.
func childManager(t *testing.T, server *apiServer, h *household) *Manager {
	t.Helper()
	object := objectOf(t, ofTrain)
	server.stored = object
	m := managerOf(t, server, object)
	m.owners = h.Owners
	return m
}

// patches counts the writes that the API server got.
func (s *apiServer) patches() int {
	count := 0
	for _, request := range s.requests {
		if request.Method == http.MethodPatch {
			count++
		}
	}
	return count
}

// What is remembered of an owner may be ten minutes old, so it is read again before a patch.
func TestNothingIsWrittenBelowAnOwnerThatWasQueuedMeanwhile(t *testing.T) {
	writes := map[string]func(*Manager) error{
		"replicas": func(m *Manager) error { _, err := m.Apply(t.Context(), oneMore); return err },
		"num-gpus": func(m *Manager) error {
			_, err := m.SyncNumGPUs(t.Context(), nodepool.NumGPUsChange{Cluster: llm, UID: "u-1"})
			return err
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			server, h := &apiServer{}, newHousehold(t, rayJob(""))
			m := childManager(t, server, h)
			if err := write(m); err != nil || server.patches() != 1 {
				t.Fatalf("below a RayJob in no queue: %v, %d patches, want one", err, server.patches())
			}
			must(t, h.client.Tracker().Update(rayJobs, rayJob("research"), "ml"))
			if err := write(m); !errors.Is(err, nodepool.ErrReadOnly) || !strings.Contains(err.Error(),
				"RayJob train") {
				t.Errorf("below a RayJob that was queued: %v, want ErrReadOnly and the RayJob's name", err)
			}
			if server.patches() != 1 {
				t.Errorf("%d patches, want no further one", server.patches())
			}
			if len(h.changed) != 2 {
				t.Errorf("%d cycles asked for, want one for each answer", len(h.changed))
			}
		})
	}
}

func TestNothingIsWrittenOnAReadingThatIsTooOldWhenTheOwnersAreKnown(t *testing.T) {
	server, h := &apiServer{}, newHousehold(t, rayJob(""))
	m := childManager(t, server, h)
	change := oneMore
	change.ValidUntil = time.Now()
	if _, err := m.Apply(t.Context(), change); !errors.Is(err, nodepool.ErrOutdated) || server.patches() != 0 {
		t.Errorf("error %v after %d patches, want ErrOutdated and no patch", err, server.patches())
	}
	reads, since := h.reads(), time.Now()
	change.ValidUntil, change.OwnersReadSince = since.Add(time.Minute), since.Add(-time.Minute)
	if _, err := m.Apply(t.Context(), change); err != nil || server.patches() != 1 || h.reads() != reads {
		t.Errorf("error %v after %d patches and %d more readings of owners, want one patch and no reading", err,
			server.patches(), h.reads()-reads)
	}
	change.OwnersReadSince = since
	if _, err := m.Apply(t.Context(), change); err != nil || h.reads() == reads {
		t.Errorf("error %v, and the owners were not read again although that was before", err)
	}
}

func TestNothingIsWrittenWhileItIsNotKnownWhetherAnOwnerIsQueued(t *testing.T) {
	server, h := &apiServer{}, newHousehold(t, rayJob(""))
	h.client.PrependReactor("get", "rayjobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the API server does not answer")
	})
	m := childManager(t, server, h)
	_, err := m.Apply(t.Context(), oneMore)
	if err == nil || errors.Is(err, nodepool.ErrReadOnly) || server.patches() != 0 {
		t.Errorf("error %v after %d patches, want one to try again after and no patch", err, server.patches())
	}
}

func TestAQueuedRayClusterIsNotWrittenTo(t *testing.T) {
	object := (&unstructured.Unstructured{Object: rayClusterOf(t, twoGroups, "8")}).DeepCopy()
	object.SetLabels(map[string]string{nodepool.QueueLabel: "research"})
	server := &apiServer{stored: object.Object}
	m := managerOf(t, server, object.Object)
	_, scaled := m.Apply(t.Context(), oneMore)
	_, synced := m.SyncNumGPUs(t.Context(), nodepool.NumGPUsChange{Cluster: llm, UID: "u-1", Generation: 7})
	for _, err := range []error{scaled, synced} {
		if !errors.Is(err, nodepool.ErrReadOnly) || !strings.Contains(err.Error(), "queue research") {
			t.Errorf("error %v, want ErrReadOnly and the queue's name", err)
		}
	}
	if server.patches() != 0 {
		t.Errorf("%d patches of a queued RayCluster", server.patches())
	}
}
