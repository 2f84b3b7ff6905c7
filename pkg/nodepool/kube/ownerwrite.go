package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// writeAsOwner sends a JSON patch on a RayCluster that was read, if this process may write to it. build returns the
// patch of an object with a term, which is empty without shards.
func (m *Manager) writeAsOwner(
	ctx context.Context, doing string, object *unstructured.Unstructured,
	build func(object map[string]any, term string) ([]byte, error),
) (written *unstructured.Unstructured, err error) {
	key := keyOf(object)
	term := ""
	if m.shards != nil {
		if term, err = m.shards.Fence(key, object.GetAnnotations()[decode.ShardAnnotation]); err != nil {
			return nil, fmt.Errorf("%s %s: %w", doing, key, err)
		}
	}
	patch, err := build(object.Object, term)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", doing, key, err)
	}
	// Check this last, as close to the write as possible.
	if !m.MayWrite(key) {
		return nil, fmt.Errorf("%s %s: %w", doing, key, nodepool.ErrNotLeading)
	}
	held, cancel := m.whileHeld(ctx, key)
	defer cancel()
	if written, err = m.patch(held, m.rayClusters, key, types.JSONPatchType, patch); apierrors.IsInvalid(err) {
		err = m.conflictOrRefusal(ctx, doing, key, err, patch,
			func(object map[string]any) ([]byte, error) { return build(object, term) })
	}
	return written, err
}

// MayWrite reports whether this process may write to a RayCluster now.
func (m *Manager) MayWrite(key nodepool.ClusterKey) bool {
	if m.shards != nil {
		return m.running.Load() && m.shards.Left(key) > 0
	}
	return m.Leading()
}

// whileHeld bounds a write by the right to write. A longer one may arrive under the next holder.
func (m *Manager) whileHeld(ctx context.Context, key nodepool.ClusterKey) (context.Context, context.CancelFunc) {
	limit := reflector.RequestTimeout
	switch {
	case m.lease != nil:
		limit = min(limit, m.lease.left())
	case m.shards != nil:
		limit = min(limit, m.shards.Left(key))
	}
	return context.WithTimeout(ctx, limit)
}
