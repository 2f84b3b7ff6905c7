package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// SetGiveBack writes the annotation give-back; nil removes it, which any process may do, as SetMode.
func (m *Manager) SetGiveBack(ctx context.Context, key nodepool.ClusterKey, r *giveback.Reservation) error {
	const doing = "writing what is given back by"
	if r == nil {
		return m.setAnnotation(ctx, key, doing, giveback.Annotation, nil)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, err)
	}
	return m.setAnnotation(ctx, key, doing, giveback.Annotation, string(text))
}
