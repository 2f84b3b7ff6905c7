package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

// SetFreeze writes or removes the annotation freeze. Users ask for it, so any process may write it, leading or not,
// whatever the mode, and whatever else changes the RayCluster at the same time: a freeze must not lose a race.
// nodepool.ErrGone: this process does not serve such a RayCluster.
func (m *Manager) SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error {
	doing, value := "unfreezing", any(nil)
	if frozen {
		doing, value = "freezing", "true"
	}
	return m.setAnnotation(ctx, key, doing, decode.FreezeAnnotation, value)
}

// SetMode writes the annotation mode, in the same way and for the same reasons as SetFreeze.
func (m *Manager) SetMode(ctx context.Context, key nodepool.ClusterKey, mode nodepool.Mode) error {
	return m.setAnnotation(ctx, key, "setting the mode of", decode.ModeAnnotation, string(mode))
}

// setAnnotation writes one annotation; nil removes it. Without a resourceVersion the patch conflicts with nothing.
func (m *Manager) setAnnotation(
	ctx context.Context,
	key nodepool.ClusterKey,
	doing, annotation string,
	value any,
) error {
	_, err := m.kept(key)
	if err == nil {
		err = m.mergeMetadata(ctx, m.userClusters, key,
			map[string]any{"annotations": map[string]any{annotation: value}})
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, err)
	}
	return nil
}

// mergeMetadata writes metadata of a RayCluster with a merge patch, which works with and without other annotations. The
// watch then requests a cycle; the single form has none.
func (m *Manager) mergeMetadata(
	ctx context.Context, client dynamic.NamespaceableResourceInterface, key nodepool.ClusterKey,
	metadata map[string]any,
) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = m.patch(ctx, client, key, types.MergePatchType, patch)
	if err == nil && m.options.Single != nil {
		m.Enqueue(key)
	}
	return err
}
