package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
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
	if err := m.writable(ctx, object); err != nil {
		return 0, err
	}
	patch, err := numGPUsPatch(object.Object, change)
	if err != nil {
		return 0, fmt.Errorf("writing num-gpus to %s: %w", change.Cluster, err)
	}
	if refusal := refuseSync(object.Object, &cluster, change); refusal != nil {
		return 0, refusal
	}
	// Check this last, as close to the write as possible.
	if !m.Leading() {
		return 0, fmt.Errorf("writing num-gpus to %s: %w", change.Cluster, nodepool.ErrNotLeading)
	}
	if m.lease != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, m.lease.left())
		defer stop()
	}
	written, err := m.patch(ctx, m.rayClusters, change.Cluster, types.JSONPatchType, patch)
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
