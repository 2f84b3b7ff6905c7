package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ResourceRequests returns what is kept in the annotation resource-requests, and since when; zero where that is not known.
// nodepool.ErrGone: no such RayCluster.
func (m *Manager) ResourceRequests(_ context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	object, err := m.newest(key)
	if err != nil {
		return nil, time.Time{}, err
	}
	cluster := m.decodes.decode(object).Cluster
	return cluster.RequestResources, cluster.RequestedSince, nil
}

// SetResourceRequests replaces the annotation resource-requests and notes since when it is asked for; nothing removes
// both. It is what a user asks for, so any process may write it, leading or not, whatever the mode. A frozen RayCluster is
// not written to, not even one whose freeze no watch has told of yet: it is written only as it was read, and read from the
// API server where what was known of it is not the newest. Of callers who meet the last one's requests are written, once for
// all. nodepool.ErrTooLarge names the limit.
func (m *Manager) SetResourceRequests(ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
	for i, request := range requests {
		if err := rayobject.CheckRequest(request); err != nil {
			return fmt.Errorf("requesting resources of %s: entry %d: %w", key, i, err)
		}
	}
	annotations, err := rayobject.EncodeRequests(requests, since)
	if err != nil {
		return fmt.Errorf("requesting resources of %s: %w", key, err)
	}
	annotations = m.withTrace(ctx, annotations, requests)
	return m.writes.write(ctx, key, annotations, func(ctx context.Context, annotations map[string]any) error {
		return m.writeRequests(ctx, key, annotations)
	})
}

// writeRequests writes annotations to a RayCluster as it is known, or where that is old as it is.
func (m *Manager) writeRequests(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any) error {
	known, err := m.newest(key)
	if err == nil {
		err = m.annotate(ctx, known, annotations)
	}
	if !isGone(err) && !isConflict(err) && !errors.Is(err, nodepool.ErrReadOnly) {
		return err
	}
	// The operator writes the status of a cluster that moves several times a second.
	patience := wait.Backoff{Steps: 8, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5}
	return retry.OnError(patience, isConflict, func() error { return m.annotateFresh(ctx, key, annotations) })
}

// annotateFresh writes annotations to the RayCluster as the API server has it now.
func (m *Manager) annotateFresh(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any) error {
	object, err := m.getRayCluster(ctx, m.userClusters, key)
	if err != nil {
		return err
	}
	m.newestSeen.remember(object)
	return m.annotate(ctx, object, annotations)
}

// annotate writes annotations to a RayCluster, unless it is no longer as it was read, and asks for its cycle; nil removes one.
func (m *Manager) annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]any) error {
	key, cluster := keyOf(object), m.decodes.decode(object).Cluster
	if cluster.Freeze || cluster.Deleting {
		return fmt.Errorf("annotating %s: %w", key, cluster.Writable())
	}
	// A merge patch works whether or not there are annotations.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("annotating %s: %w", key, err)
	}
	written, err := m.patch(ctx, m.userClusters, key, types.MergePatchType, patch)
	if err != nil {
		return err
	}
	if m.newestSeen.needsCycle(written) {
		m.pool.enqueueForRequest(key)
	}
	return nil
}

// Requests gives the annotation resource-requests of all RayClusters the shape of a store.
type Requests struct{ Manager *Manager }

// Get returns what is kept, and since when; zero where that is not known.
func (r Requests) Get(ctx context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	return r.Manager.ResourceRequests(ctx, key)
}

// Set replaces what is kept; nothing clears it.
func (r Requests) Set(ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error {
	return r.Manager.SetResourceRequests(ctx, key, requests, since)
}
