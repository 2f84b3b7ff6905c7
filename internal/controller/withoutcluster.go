package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/ownerstatus"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// recheckPause is the pause before requests for a missing RayCluster are checked again: a status may not have been
// written.
const recheckPause = 5 * time.Second

// updateRequestsWithoutCluster updates the ResourceRequests for a RayCluster that does not exist, and deletes those
// whose lease ended long ago. It returns the pause until a lease ends; 0 means that only an event starts the next
// cycle. It writes only if --mode or the namespace makes clusters managed: otherwise another Heliostat may manage that
// cluster once it exists.
func (c *Controller) updateRequestsWithoutCluster(key nodepool.ClusterKey, now time.Time) (next time.Duration) {
	if c.config.Owned == nil || c.config.ReadOnly || c.config.Form != mode.Fleet || !c.asked(key) {
		return 0
	}
	var updates []nodepool.OwnedUpdate
	for _, request := range c.config.Owned.Of(key) {
		if request.Deleting || request.ClusterUID != "" {
			continue // Kubernetes deletes what a RayCluster owned
		}
		update, until := ownerstatus.WithoutCluster(&request, now)
		if update != nil {
			updates, until = append(updates, *update), recheckPause
		}
		if until > 0 && (next == 0 || until < next) {
			next = until
		}
	}
	if len(updates) > 0 {
		c.config.Owned.Report(updates)
	}
	return next
}

// asked reports whether a RayCluster of that name would be managed without an annotation of its own.
func (c *Controller) asked(key nodepool.ClusterKey) bool {
	mode, unknown := c.kube.NamespaceMode(key.Namespace)
	asked, _ := c.config.modes().Asked(nodepool.Cluster{Key: key, NamespaceMode: mode, NamespaceUnknown: unknown})
	return asked == nodepool.Managed
}
