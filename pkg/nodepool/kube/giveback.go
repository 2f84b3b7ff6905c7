package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// maxGiveBack bounds the annotation in bytes; all annotations of an object may have 256 KiB together.
const maxGiveBack = 96 << 10

// BeginGiveBack writes the annotation give-back, and for a taker the annotation reclaimed, to the very object that the
// reservation was made for. nodepool.ErrConflict: it has changed since. nodepool.ErrTooLarge: it names too many
// workers.
func (m *Manager) BeginGiveBack(ctx context.Context, of nodepool.Cluster, r *giveback.Reservation) error {
	doing := "writing what " + of.Key.String() + " gives back"
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if len(text) > maxGiveBack {
		return fmt.Errorf("%s: %w: %d workers take %d bytes, the limit is %d", doing, nodepool.ErrTooLarge,
			len(r.Workers), len(text), maxGiveBack)
	}
	annotations := map[string]any{giveback.Annotation: string(text)}
	if r.Taker != "" {
		annotations[giveback.ReclaimedAnnotation] = giveback.TakingsText(r.Takings(of.Reclaimed))
	}
	err = m.mergeMetadata(ctx, m.rayClusters, of.Key, map[string]any{
		"uid": of.UID, "resourceVersion": of.ResourceVersion, "annotations": annotations,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// EndGiveBack removes the annotation. Given a version of the RayCluster, it removes what that version has:
// nodepool.ErrConflict says that the RayCluster has changed since, and may have another reservation. Without one it
// removes whatever is there, which any process may do, as SetMode.
func (m *Manager) EndGiveBack(ctx context.Context, of nodepool.Cluster) error {
	const doing = "ending what is given back by"
	if of.ResourceVersion == "" {
		return m.setAnnotation(ctx, of.Key, doing, giveback.Annotation, nil)
	}
	err := m.mergeMetadata(ctx, m.rayClusters, of.Key, map[string]any{"uid": of.UID,
		"resourceVersion": of.ResourceVersion, "annotations": map[string]any{giveback.Annotation: nil}})
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, of.Key, err)
	}
	return nil
}
