package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ResourceRequests returns the requests in the annotation resource-requests, and since when; zero if that is unknown.
// nodepool.ErrGone: no such RayCluster.
func (m *Manager) ResourceRequests(_ context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	object, err := m.kept(key)
	if err != nil {
		return nil, time.Time{}, err
	}
	cluster := m.decodes.decode(object).Cluster
	return cluster.RequestResources, cluster.RequestedSince, nil
}

// SetResourceRequests replaces the annotation resource-requests and sets since when; without requests it removes both.
// Users ask for it, so any process may write it, leading or not, whatever the mode. It does not write to a frozen
// RayCluster, even if no watch has reported the freeze yet: the write succeeds only for the version that was read, and
// after a conflict the RayCluster is read from the API server. nodepool.ErrTooLarge names the limit.
func (m *Manager) SetResourceRequests(
	ctx context.Context,
	key nodepool.ClusterKey,
	requests []raydemand.Request,
	since time.Time,
) error {
	for i, request := range requests {
		if err := decode.CheckRequest(request); err != nil {
			return fmt.Errorf("requesting resources of %s: entry %d: %w", key, i, err)
		}
	}
	annotations, err := decode.EncodeRequests(requests, since)
	if err != nil {
		return fmt.Errorf("requesting resources of %s: %w", key, err)
	}
	return m.writeRequests(ctx, key, annotations)
}

// writeRequests writes annotations to the known RayCluster, or if that is out of date, to a fresh one.
func (m *Manager) writeRequests(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any) error {
	known, err := m.kept(key)
	if err == nil {
		err = m.annotate(ctx, known, annotations)
	}
	if !isGone(err) && !isConflict(err) && !errors.Is(err, nodepool.ErrReadOnly) {
		return err
	}
	// While pods of a cluster start or stop, the operator writes its status several times a second.
	patience := wait.Backoff{Steps: 8, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5}
	var last error // retry.OnError returns no error for a write that was cut
	_ = retry.OnError(patience, isConflict, func() error { last = m.annotateFresh(ctx, key, annotations); return last })
	return last
}

// annotateFresh reads the RayCluster from the API server and writes annotations to it.
func (m *Manager) annotateFresh(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any) error {
	object, err := m.getRayCluster(ctx, m.userClusters, key)
	if err != nil {
		return err
	}
	m.newestSeen.remember(object)
	return m.annotate(ctx, object, annotations)
}

// annotate writes annotations to a RayCluster, unless it has changed; nil removes one.
func (m *Manager) annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]any) error {
	key, cluster := keyOf(object), m.decodes.decode(object).Cluster
	if cluster.Freeze || cluster.Deleting {
		return fmt.Errorf("annotating %s: %w", key, cluster.Writable())
	}
	return m.mergeMetadata(ctx, m.userClusters, key, map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "annotations": annotations,
	})
}
