package controller

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/ownerstatus"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// OwnedRequests tells owners what becomes of their requests.
type OwnedRequests interface {
	// Of lists the requests for a RayCluster, whether it is there or not.
	Of(key nodepool.ClusterKey) []nodepool.OwnedRequest
	// Tell writes the updates soon and waits for nothing. What cannot be written is dropped: it is found missing, and told again.
	Tell(updates []nodepool.OwnedUpdate)
}

// updateRequests tells every owner what becomes of his request, adopts objects that nobody owns, and lets those go whose lease has long been over.
// It does so in every mode that the RayCluster itself asks for: only scaling stops, and owners shall see that. While Ray does not answer nothing is
// known, and only leases run on.
func (c *Controller) updateRequests(ctx context.Context, r *record, o outcome) {
	v := &o.view
	if c.config.Owned == nil || c.config.ReadOnly || v.Cluster.Deleting || c.byDefault(v) || len(v.Cluster.Owned) == 0 {
		r.reported = nil
		return
	}
	updates, news, expired := ownerstatus.Updates(v, o.intent.plan, r.reported, &r.starts)
	r.reported = news
	for _, request := range expired {
		c.config.Log.InfoContext(ctx, "request expired", "cluster", v.Cluster.Key.String(), "request", request.ID, "owner", request.Owner)
		c.kube.Event(v.Cluster, true, EventRequestExpired, fmt.Sprintf("request %s of %s: its lease of %d s is over, so what only it held is released",
			request.ID, request.Owner, request.LeaseSeconds))
	}
	if len(updates) > 0 {
		c.config.Owned.Tell(updates)
	}
}

// byDefault reports whether it is this process alone that does not manage the cluster. Another Heliostat may, and it is the one that writes to
// requests: what this one knows of a lease depends on its own clock and on how long it has run, and two minds would write against each other.
func (c *Controller) byDefault(v *observation.View) bool {
	if v.Mode == nodepool.Managed || v.Cluster.Mode != "" || v.Cluster.NamespaceMode != "" {
		return false
	}
	asked, _ := c.config.modes().Asked(v.Cluster)
	return asked != nodepool.Managed
}
