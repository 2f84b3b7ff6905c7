package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
)

// SetCapacityPolicy writes the annotation capacity-policy; nil removes it. Users ask for it, so any process may write
// it, as SetMode does.
func (m *Manager) SetCapacityPolicy(
	ctx context.Context, key nodepool.ClusterKey, policy *capacity.Policy,
) error {
	const doing = "setting the capacity policy of"
	if policy == nil {
		return m.setAnnotation(ctx, key, "removing the capacity policy of", capacity.Annotation, nil)
	}
	text, err := json.Marshal(policy)
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, err)
	}
	if len(text) > policytext.MaxBytes {
		return fmt.Errorf("%s %s: %w: %d bytes, the limit is %d", doing, key, nodepool.ErrTooLarge, len(text),
			policytext.MaxBytes)
	}
	return m.setAnnotation(ctx, key, doing, capacity.Annotation, string(text))
}
