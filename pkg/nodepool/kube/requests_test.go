package kube

import (
	"errors"
	"log/slog"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
)

func TestAWorkerStaysForRequestsOfAClusterThatIsNotThere(t *testing.T) {
	ignore := func(nodepool.ClusterKey) {}
	store := requests.New(requests.Config{Changed: ignore, StatusChanged: ignore, Logger: slog.New(slog.DiscardHandler)})
	m := &Manager{requests: store, source: nothing{}}
	if m.needsWorker(llm) {
		t.Error("nobody asks for anything")
	}
	store.Set(requests.Decode(&unstructured.Unstructured{Object: objectOf(t,
		"{metadata: {namespace: ml, name: a, uid: uid-a}, spec: {rayCluster: llm, owner: ada, bundles: [{resources: {GPU: 1}}]}}")}))
	if !m.needsWorker(llm) {
		t.Error("a request waits for its status")
	}
}

// nothing has no RayClusters.
type nothing struct{ objects }

func (nothing) rayCluster(nodepool.ClusterKey) (*unstructured.Unstructured, error) { return nil, nil }

func TestARefusalOfKubernetesIsDistinguishedFromAnInternalError(t *testing.T) {
	forbidden := apierrors.NewForbidden(rayClusterResource.GroupResource(), "llm", errors.New("cannot patch"))
	if err := classified(forbidden); !errors.Is(err, nodepool.ErrDenied) || !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}
