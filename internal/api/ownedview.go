package api

import (
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// statusOf returns the status of a request, corrected by facts that the stored status lacks: the lease has expired, the
// object is being deleted, or Heliostat does not scale the RayCluster.
func (s *server) statusOf(r *nodepool.OwnedRequest) nodepool.OwnedStatus {
	if r.Deleting {
		return nodepool.OwnedStatus{State: raydemand.RequestExpired, Code: raydemand.CodeDeleting,
			Message: "the request is being deleted and no longer counts; a finalizer delays the deletion"}
	}
	status := r.Current()
	if r.Expired(s.now()) && status.State != raydemand.RequestExpired {
		status = nodepool.OwnedStatus{State: raydemand.RequestExpired, Since: r.ExpiresAt(),
			Code: raydemand.CodeLeaseOver, Message: "the lease has expired"}
	}
	// If --mode alone sets the mode, nothing writes a status, so this is the only place with the reason.
	if why := s.notScaled(r.Cluster); why != "" && status.Code == raydemand.CodeNotLookedAt {
		status.Code = raydemand.CodeNotScaled
		status.Message = "nothing is launched for it, because the RayCluster is not scaled now: " + why
	}
	return status
}

// ownedView returns a request as the API shows it.
func (s *server) ownedView(r *nodepool.OwnedRequest) apiv1.OwnedRequest {
	status := s.statusOf(r)
	view := apiv1.OwnedRequest{
		ID: r.ID, Namespace: r.Cluster.Namespace, Cluster: r.Cluster.Name, Owner: r.Owner, Priority: r.Priority,
		AllOrNothing: r.AllOrNothing, LeaseSeconds: r.LeaseSeconds, HoldUntilDeleted: r.LeaseSeconds == 0,
		CreatedAt: apiv1.Time(r.Since), ExpiresAt: apiv1.Time(r.ExpiresAt()), Bundles: apiv1.List(r.Requests),
		State: status.State, Since: apiv1.Time(status.Since),
		Reason: apiv1.Reason{Code: status.Code, Message: status.Message},
		Pods:   status.Pods, ExpectedAt: apiv1.Time(status.ExpectedAt),
	}
	if r.LeaseSeconds > 0 {
		view.RenewedAt = apiv1.Time(r.RenewedAt)
	}
	for _, g := range status.Groups {
		view.Groups = append(view.Groups, apiv1.ServingGroup{Name: g.Name, Pods: g.Pods})
	}
	return view
}

// plainView returns the request without an owner, with its state in the last plan.
func (s *server) plainView(key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) apiv1.OwnedRequest {
	view := apiv1.OwnedRequest{
		Namespace: key.Namespace, Cluster: key.Name, Plain: true, AllOrNothing: true, HoldUntilDeleted: true,
		CreatedAt: apiv1.Time(since), Bundles: requests, State: raydemand.RequestWaiting,
		Reason: apiv1.Reason{Code: raydemand.CodeNotLookedAt, Message: "no plan includes the request yet"},
	}
	cluster, _ := s.Fleet.View(key)
	for _, plan := range cluster.Plan.Requests {
		if !plan.Plain {
			continue
		}
		view.State, view.Reason, view.Pods = plan.State, plan.Reason, plan.Pods
		for _, g := range plan.Groups {
			if g.Name != "" {
				view.Groups = append(view.Groups, apiv1.ServingGroup{Name: g.Name, Pods: int32(g.Pods)})
			}
		}
	}
	return view
}

// Limits on each request in a list; only a call for the request itself shows all of it. Terms are the names and values
// in a bundle and its selectors.
const (
	maxListedBundles = 8
	maxListedTerms   = 64
)

// truncated returns a request as lists show it: its first bundles, and the number of the others.
func truncated(r apiv1.OwnedRequest) apiv1.OwnedRequest {
	terms, shown := 0, 0
	for shown < min(len(r.Bundles), maxListedBundles) {
		if terms += termsOf(&r.Bundles[shown]); terms > maxListedTerms {
			break
		}
		shown++
	}
	r.MoreBundles = len(r.Bundles) - shown
	r.Bundles = r.Bundles[:shown:shown]
	return r
}

func termsOf(request *raydemand.Request) int {
	terms := len(request.Bundle)
	for _, selector := range request.Selectors {
		for _, c := range selector {
			terms += 1 + len(c.Values)
		}
	}
	return terms
}
