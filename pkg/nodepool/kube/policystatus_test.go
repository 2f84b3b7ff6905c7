package kube

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/api/v1alpha1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
)

func TestTheStatusOfAPolicyIsThatOfItsRayCluster(t *testing.T) {
	for name, c := range map[string]struct {
		state   capacity.State
		exists  bool
		change  func(m *Manager)
		refused error
	}{
		"of a RayCluster that exists":                       {capacity.Active, true, nil, nil},
		"of one that does not exist":                        {capacity.NoRayCluster, false, nil, nil},
		"that it does not exist, of one that exists by now": {capacity.NoRayCluster, true, nil, nodepool.ErrConflict},
		"by a process that only reads":                      {capacity.NoRayCluster, false, func(m *Manager) { m.options.ReadOnly = true }, nodepool.ErrReadOnly},
		"by a process that does not lead":                   {capacity.NoRayCluster, false, func(m *Manager) { m.running.Store(false) }, nodepool.ErrNotLeading},
	} {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{stored: map[string]any{"apiVersion": "heliostat.dev/v1alpha1", "kind": "CapacityPolicy"}}
			m := managerOf(t, server, rayClusterOf(t, twoGroups, "8"))
			m.dynamic = dynamicOf(t, server)
			if !c.exists {
				m.source = shown{}
			}
			if c.change != nil {
				c.change(m)
			}
			err := m.ReportPolicy(t.Context(), llm, capacity.Status{Name: "office", UID: "u-9", State: c.state})
			if !errors.Is(err, c.refused) || (err != nil) != (c.refused != nil) {
				t.Errorf("error %v, want %v", err, c.refused)
			}
			written := len(server.requests) == 1 && server.requests[0].Method == http.MethodPatch &&
				server.requests[0].URL.Path == "/apis/heliostat.dev/v1alpha1/namespaces/ml/capacitypolicies/office/status"
			if written != (c.refused == nil) || !written && len(server.requests) > 0 {
				t.Errorf("%d requests", len(server.requests))
			}
		})
	}
}

// serving is an API server that serves CapacityPolicies.
type serving struct {
	discovery.ServerResourcesInterface
}

func (serving) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "capacitypolicies"}}}, nil
}

// TestAWorkerStaysForPoliciesOfAClusterThatIsNotThere: a status that could not be written is tried again.
func TestAWorkerStaysForPoliciesOfAClusterThatIsNotThere(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{v1alpha1.CapacityPolicyResource: "CapacityPolicyList"},
		&unstructured.Unstructured{Object: objectOf(t, `{apiVersion: heliostat.dev/v1alpha1, kind: CapacityPolicy,
			metadata: {namespace: ml, name: office, uid: u-9}, spec: {rayCluster: llm, keepWarm: [{group: gpu, count: 1}]}}`)})
	client.PrependWatchReactor("*", func(action k8stesting.Action) (bool, watch.Interface, error) {
		if action.(k8stesting.WatchActionImpl).ListOptions.SendInitialEvents != nil { // the fake client cannot
			return true, nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
		}
		return false, nil, nil
	})
	seen := make(chan nodepool.ClusterKey, 8)
	known := attached.NewPolicies(attached.Config{Client: client, Discovery: serving{}, Logger: slog.New(slog.DiscardHandler),
		Changed: func(key nodepool.ClusterKey) { seen <- key }})
	m := &Manager{policies: known, source: nothing{}}
	if m.needsWorker(llm) {
		t.Error("nothing is there")
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = known.Start(ctx) }()
	for key := range seen {
		if key == llm {
			break
		}
	}
	if !m.needsWorker(llm) {
		t.Error("a policy waits for its status")
	}
	end()
	<-done
}
