package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// SetFreeze writes the annotation freeze, or removes it. It is what a user asks for, so any process may write it, leading or
// not, whatever the mode, and whatever else changes the RayCluster at the same time: a freeze must not lose a race.
// nodepool.ErrGone: no RayCluster that this process looks after.
func (m *Manager) SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error {
	doing := "freezing"
	if !frozen {
		doing = "unfreezing"
	}
	if _, err := m.newest(key); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, err)
	}
	patch, err := json.Marshal(freezePatch(frozen))
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, err)
	}
	written, err := m.patch(ctx, m.askedClusters, key, types.MergePatchType, patch)
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, err)
	}
	if m.floor.ask(written) {
		m.Enqueue(key)
	}
	return nil
}

// freezePatch is a merge patch, which works whether or not there are annotations. Without a resourceVersion it conflicts with nothing.
func freezePatch(frozen bool) map[string]any {
	annotations := map[string]any{FreezeAnnotation: nil}
	if frozen {
		annotations[FreezeAnnotation] = "true"
	}
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}
