package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// strandedPause is when what was told of requests for a RayCluster that is not there is looked at again: it may not have been written.
const strandedPause = 5 * time.Second

// tellStranded tells owners of requests for a RayCluster that is not there, and lets those go whose lease has long been over. It returns the pause
// until there is more to tell; 0 is: when something happens. Where neither --mode nor the namespace says that clusters
// are managed, it says nothing: somebody else may look after that one once it comes.
func (c *Controller) tellStranded(key nodepool.ClusterKey, now time.Time) (next time.Duration) {
	if c.config.Owned == nil || c.config.ReadOnly || c.config.Form != mode.Fleet || !c.asked(key) {
		return 0
	}
	var updates []nodepool.OwnedUpdate
	for _, request := range c.config.Owned.Of(key) {
		if request.Deleting || request.ClusterUID != "" {
			continue // Kubernetes deletes what a RayCluster owned
		}
		update, until := stranded(&request, now)
		if update != nil {
			updates, until = append(updates, *update), strandedPause
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

// stranded is what is to be written to one request, nil for nothing, and how long that stays true; 0 is for good.
func stranded(request *nodepool.OwnedRequest, now time.Time) (u *nodepool.OwnedUpdate, until time.Duration) {
	u = &nodepool.OwnedUpdate{Namespace: request.Cluster.Namespace, Name: request.ID, UID: request.UID, ResourceVersion: request.ResourceVersion}
	var status nodepool.OwnedStatus
	switch {
	case request.Unreadable != "":
		status = unreadable(request)
	case request.Expired(now):
		if goes := request.DeletionTime(); !goes.IsZero() {
			if until = goes.Sub(now); until <= 0 {
				u.Delete = true
				return u, 0
			}
		}
		status = leaseOver(request)
	case request.Admission == nodepool.Refused:
		status = nodepool.OverMemory(request)
		if request.LeaseSeconds > 0 {
			until = request.ExpiresAt().Sub(now)
		}
	default:
		status = nodepool.OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeUnknownCluster,
			Message: fmt.Sprintf("there is no RayCluster %s among those that Heliostat looks after", request.Cluster)}
		if request.LeaseSeconds > 0 {
			until = request.ExpiresAt().Sub(now)
		}
	}
	complete(&status, request, now)
	if request.Status.Equal(status) {
		return nil, until
	}
	u.Status = &status
	return u, until
}
