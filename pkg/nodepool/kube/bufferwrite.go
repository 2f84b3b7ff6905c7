package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// KeepNodes creates, changes or removes one CapacityBuffer with its PodTemplate. Its errors are those of Guard. That
// the RayCluster is suspended does not prevent the removal: its nodes would cost money for nothing.
func (m *Manager) KeepNodes(ctx context.Context, change nodepool.BufferChange) error {
	doing := "CapacityBuffer " + change.Buffer.Name
	object, err := m.mayWriteBeside(change.Cluster, change.Remove)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if string(object.GetUID()) != change.UID {
		return fmt.Errorf("%s: RayCluster %s was created again: %w", doing, change.Cluster, nodepool.ErrConflict)
	}
	ctx, cancel := m.whileHeld(ctx, change.Cluster)
	defer cancel()
	if change.Remove {
		err = m.buffers.Remove(ctx, object, change.Buffer)
	} else {
		err = m.buffers.Keep(ctx, object, m.podLabels(object, change.Buffer.Group), change.Buffer)
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", nodepool.ErrDenied, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", nodepool.ErrConflict, err)
	}
	return err
}
