package controller

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/ownerstatus"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// OwnedRequests lists ResourceRequests and writes their status.
type OwnedRequests interface {
	// Of lists the requests for a RayCluster, whether it exists or not.
	Of(key nodepool.ClusterKey) []nodepool.OwnedRequest
	// Report queues the updates and does not block. An update that cannot be written is dropped; the next cycle finds
	// it missing and queues it again.
	Report(updates []nodepool.OwnedUpdate)
}

// updateRequests updates the status of every ResourceRequest, adopts objects without an owner, and deletes those whose
// lease ended long ago. It does so in every mode that the RayCluster itself asks for: then only scaling stops, and
// owners need to see that. While Ray does not answer, only leases continue.
func (c *Controller) updateRequests(ctx context.Context, r *record, o outcome) {
	v := &o.view
	if c.config.Owned == nil || c.config.ReadOnly || v.Cluster.Deleting || c.byDefault(v) || len(v.Cluster.Owned) == 0 {
		r.reported = nil
		return
	}
	updates, news, expired := ownerstatus.Updates(v, o.intent.plan, r.reported, &r.starts)
	r.reported = news
	for _, request := range expired {
		c.config.Log.InfoContext(ctx, "request expired", "cluster", v.Cluster.Key.String(), "request", request.ID,
			"owner", request.Owner)
		c.kube.Event(v.Cluster, true, EventRequestExpired,
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
func (c *Controller) byDefault(v *observation.View) bool {
	if v.Mode == nodepool.Managed || v.Cluster.Mode != "" || v.Cluster.NamespaceMode != "" {
		return false
	}
	asked, _ := c.config.modes().Asked(v.Cluster)
	return asked != nodepool.Managed
}
