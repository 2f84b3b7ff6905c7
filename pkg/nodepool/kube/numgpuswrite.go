package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/guarded"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
)

// SyncNumGPUs writes numbers of GPUs into the spec with one guarded JSON patch, all targets or none, and returns the
// RayCluster's new generation. It reads the object from the API server, because the caches drop managedFields. A
// *nodepool.SyncRefusal says why they must not be written; the other errors are those of Apply.
func (m *Manager) SyncNumGPUs(ctx context.Context, change nodepool.NumGPUsChange) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timing.RequestTimeout)
	defer cancel()
	object, err := m.getRayCluster(ctx, m.rayClusters, change.Cluster)
	if err != nil {
		return 0, err
	}
	m.newestSeen.remember(object)
	cluster := rayobject.DecodeObject(object).Cluster
	if err := m.writable(ctx, object, time.Time{}); err != nil {
		return 0, err
	}
	if refusal := refuseSync(object.Object, &cluster, change); refusal != nil {
		return 0, refusal
	}
	written, _, err := m.writeAsOwner(ctx, "writing num-gpus to", object, func(term string) ([]byte, error) {
		change.Term = term
		return guarded.NumGPUs(object.Object, change)
	})
	if apierrors.IsInvalid(err) {
		return 0, m.numGPUsConflict(ctx, change, object.GetResourceVersion(), err)
	}
	if err != nil {
		return 0, err
	}
	return written.GetGeneration(), nil
}

// numGPUsConflict distinguishes a failed test from a change that the API server rejects, by the version that was
// tested.
func (m *Manager) numGPUsConflict(
	ctx context.Context,
	change nodepool.NumGPUsChange,
	version string,
	invalid error,
) error {
	object, err := m.getRayCluster(ctx, m.rayClusters, change.Cluster)
	if err != nil || object.GetResourceVersion() != version {
		return invalid
	}
	var answer *apierrors.StatusError
	if !errors.As(invalid, &answer) {
		return invalid
	}
	return fmt.Errorf("writing num-gpus to %s: refused by the API server: %w", change.Cluster, answer)
}
