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

// mergeMetadata writes metadata of a RayCluster, with annotations, with a merge patch, which works with and without
// other annotations. The watch then requests a cycle; the single form has none. It is an error if a webhook has removed
// an annotation, such as freeze, because callers rely on it.
func (m *Manager) mergeMetadata(
	ctx context.Context, client dynamic.NamespaceableResourceInterface, key nodepool.ClusterKey,
	metadata map[string]any,
) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	written, err := m.patch(ctx, client, key, types.MergePatchType, patch)
	if err != nil {
		return err
	}
	if m.options.Single != nil {
		m.Enqueue(key)
	}
	stored := written.GetAnnotations()
	for name, value := range metadata["annotations"].(map[string]any) {
		if is, has := stored[name]; has != (value != nil) || has && value != is {
			return fmt.Errorf("%w: an admission webhook altered the annotation %s, which is %q now", nodepool.ErrDenied,
				name, is)
		}
	}
	return nil
}
