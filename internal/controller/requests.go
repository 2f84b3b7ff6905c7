package controller

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// updateRequests updates the status of every ResourceRequest, adopts objects without an owner, and deletes those whose
// lease ended long ago. It does so in every mode that the RayCluster itself asks for: then only scaling stops, and
// owners need to see that. While Ray does not answer, only leases continue.
func (c *Controller) updateRequests(ctx context.Context, r *record, o addon.Cycle) {
	v := &o.View
	if c.config.Owned == nil || c.config.ReadOnly || v.Cluster.Deleting || c.byDefault(v) || len(v.Cluster.Owned) == 0 {
		r.memory.reported = nil
		return
	}
	updates, reported, expired := requestUpdates(v, o.Intent.Plan, r.memory.reported)
	r.memory.reported = reported // so that a change is written once
	for _, request := range expired {
		c.config.Log.InfoContext(ctx, "request expired", "cluster", v.Cluster.Key.String(), "request", request.ID,
			"owner", request.Owner)
		c.kube.Event(v.Cluster, true, addon.ReasonRequestExpired,
			fmt.Sprintf("request %s of %s: its lease of %d s has ended, so workers that only it kept are released",
				request.ID, request.Owner, request.LeaseSeconds))
	}
	if len(updates) > 0 {
		c.config.Owned.Report(updates)
	}
}

// byDefault reports whether only the default of this process leaves the cluster unmanaged. Then another Heliostat may
// manage it and write to its requests. Two writers would overwrite each other, because what a process knows of a lease
// depends on its own clock and uptime.
func (c *Controller) byDefault(v *observe.View) bool {
	if v.Mode == nodepool.Managed || v.Cluster.Mode != "" || v.Cluster.NamespaceMode != "" {
		return false
	}
	asked, _ := c.config.Asked(v.Cluster)
	return asked != nodepool.Managed
}
