package httpapi

import (
	"time"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// becameOf is what a status says, and what is known without one: that a lease is over, or that the object is being deleted.
func (s *server) becameOf(r *nodepool.OwnedRequest) nodepool.OwnedStatus {
	if r.Deleting {
		return nodepool.OwnedStatus{State: raydemand.RequestExpired, Code: raydemand.CodeDeleting,
			Message: "it is being deleted and does not count any more; a finalizer keeps the object"}
	}
	status := r.Current()
	if r.Expired(s.now()) && status.State != raydemand.RequestExpired {
		status = nodepool.OwnedStatus{State: raydemand.RequestExpired, Since: r.ExpiresAt(), Code: raydemand.CodeLeaseOver, Message: "its lease is over"}
	}
	// No status is written where the mode is that of --mode alone, so this is the only place that says why the request waits.
	if why := s.notScaled(r.Cluster); why != "" && status.Code == raydemand.CodeNotLookedAt {
		status.Code, status.Message = raydemand.CodeNotScaled, "nothing is launched for it, because the RayCluster is not scaled now: "+why
	}
	return status
}

// requestShown is a request as callers see it. What became of it is what was decided last, which its status says soon: all replicas pass calls on to the
// one that decides.
func (s *server) requestShown(r *nodepool.OwnedRequest) apiv1.OwnedRequest {
	status := s.becameOf(r)
	shown := apiv1.OwnedRequest{
		ID: r.ID, Namespace: r.Cluster.Namespace, Cluster: r.Cluster.Name, Owner: r.Owner, Priority: r.Priority, AllOrNothing: r.AllOrNothing,
		LeaseSeconds: r.LeaseSeconds, HoldUntilDeleted: r.LeaseSeconds == 0, CreatedAt: moment(r.Since), ExpiresAt: moment(r.ExpiresAt()),
		Bundles: list(r.Requests), State: status.State, Since: moment(status.Since), Reason: apiv1.Reason{Code: status.Code, Message: status.Message},
		Pods: status.Pods, ExpectedAt: moment(status.ExpectedAt),
	}
	if r.LeaseSeconds > 0 {
		shown.RenewedAt = moment(r.RenewedAt)
	}
	if r.Omitted != nil && len(r.Requests) == 0 {
		shown.MoreBundles = r.Omitted.Bundles
	}
	for _, g := range status.Groups {
		shown.Groups = append(shown.Groups, apiv1.ServingGroup{Name: g.Name, Pods: g.Pods})
	}
	return shown
}

// plainShown is the request without an owner, with what the last plan says of it.
func (s *server) plainShown(key nodepool.ClusterKey, kept []raydemand.Request, since time.Time) apiv1.OwnedRequest {
	shown := apiv1.OwnedRequest{
		Namespace: key.Namespace, Cluster: key.Name, Plain: true, AllOrNothing: true, HoldUntilDeleted: true, CreatedAt: moment(since),
		Bundles: kept, State: raydemand.RequestWaiting, Reason: apiv1.Reason{Code: raydemand.CodeNotLookedAt, Message: "no plan has taken it in yet"},
	}
	view, _ := s.Fleet.View(key)
	for _, plan := range view.Plan.Requests {
		if !plan.Plain {
			continue
		}
		shown.State, shown.Reason, shown.Pods = plan.State, plan.Reason, plan.Pods
		for _, g := range plan.Groups {
			if g.Name != "" {
				shown.Groups = append(shown.Groups, apiv1.ServingGroup{Name: g.Name, Pods: int32(g.Pods)})
			}
		}
	}
	return shown
}
