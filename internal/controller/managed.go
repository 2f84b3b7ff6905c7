package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// stillManaged reports whether the caches still show the RayCluster as managed. It is called right before each write:
// a patch tests the annotations of the RayCluster itself, but cannot test those of the namespace.
func (c *Controller) stillManaged(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now)
}

// mayStillTakeAway reports whether the RayCluster is still managed, and its ResourceRequests and its policy are still
// known.
func (c *Controller) mayStillTakeAway(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now) && now.Unknown() == ""
}

func (c *Controller) manages(before, now nodepool.Cluster) bool {
	if now.UID != before.UID || now.Writable() != nil {
		return false
	}
	mode, _ := c.config.modes().Effective(now)
	return mode == nodepool.Managed
}

// mayGuardNow reports whether the caches still show the same RayCluster in the same mode.
func (c *Controller) mayGuardNow(before observe.View, now nodepool.Cluster) bool {
	mode, _ := c.config.modes().Effective(now)
	return now.UID == before.Cluster.UID && mode == before.Mode && now.Writable() == nil
}
