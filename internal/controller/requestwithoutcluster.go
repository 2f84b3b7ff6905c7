package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// statusWithoutCluster returns what to write to one request whose RayCluster does not exist, nil for nothing, and how
// long that stays valid; 0 means for good.
func statusWithoutCluster(
	request *nodepool.OwnedRequest, now time.Time,
) (u *nodepool.OwnedUpdate, until time.Duration) {
	u = &nodepool.OwnedUpdate{
		Namespace:       request.Cluster.Namespace,
		Name:            request.ID,
		UID:             request.UID,
		ResourceVersion: request.ResourceVersion,
	}
	status, excluded := request.Excluded()
	switch {
	case excluded:
	case request.Expired(now):
		if goes := request.DeletionTime(); !goes.IsZero() {
			if until = goes.Sub(now); until <= 0 {
				u.Delete = true
				return u, 0
			}
		}
		status = leaseOver(request)
	default:
		status = nodepool.OwnedStatus{State: raydemand.RequestWaiting, Code: raydemand.CodeUnknownCluster,
			Message: fmt.Sprintf("Heliostat does not watch a RayCluster %s, or it does not exist", request.Cluster)}
	}
	if request.LeaseSeconds > 0 && !request.Expired(now) {
		until = request.ExpiresAt().Sub(now)
	}
	completeStatus(&status, request, now)
	if request.Status.Equal(status) {
		return nil, until
	}
	u.Status = &status
	return u, until
}
