package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/ownerstatus"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// recheckPause is when what was told of requests for a RayCluster that is not there is looked at again: it may not have been written.
const recheckPause = 5 * time.Second

// updateRequestsWithoutCluster tells owners of requests for a RayCluster that is not there, and lets those go whose lease has long been over. It returns the pause
// until there is more to tell; 0 is: when something happens. Where neither --mode nor the namespace says that clusters
// are managed, it says nothing: somebody else may look after that one once it comes.
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
		c.config.Owned.Tell(updates)
	}
	return next
}

// asked reports whether a RayCluster of that name would be managed, were it there, without an annotation of its own.
func (c *Controller) asked(key nodepool.ClusterKey) bool {
	mode, unknown := c.kube.NamespaceMode(key.Namespace)
	asked, _ := c.config.modes().Asked(nodepool.Cluster{Key: key, NamespaceMode: mode, NamespaceUnknown: unknown})
	return asked == nodepool.Managed
}
