package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// ListClusterRequests serves GET …/requests. Without a store of requests with owners it shows the plain request alone.
func (s *server) ListClusterRequests(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	plain, since, err := s.Requests.ResourceRequests(ctx, key)
	if err != nil {
		s.answers.Fail(c, fmt.Errorf("reading the request for %s: %w", key, err))
		return
	}
	list := apiv1.RequestList{Items: []apiv1.OwnedRequest{}}
	if len(plain) > 0 {
		list.Items = append(list.Items, s.plainView(key, plain, since))
	}
	owned, err := s.Owned.List(key)
	if err != nil && !errors.Is(err, nodepool.ErrNoRequests) {
		s.answers.Fail(c, err)
		return
	}
	for i := range owned {
		list.Items = append(list.Items, s.ownedView(&owned[i]))
	}
	s.answers.JSON(c, http.StatusOK, list)
}

// GetRequest serves GET …/request_resources/{id}.
func (s *server) GetRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID) {
	err := checkID(id)
	var found nodepool.OwnedRequest
	if err == nil {
		found, err = s.Owned.Get(nodepool.ClusterKey{Namespace: namespace, Name: name}, id)
	}
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.writeRequest(c, http.StatusOK, &found)
}

func checkID(id string) error {
	if !IsID(id) {
		return invalidField("id", shorten(id), WantID)
	}
	return nil
}

// statusOf returns the status of a request, corrected by facts that the stored status lacks: the lease has expired, the
// object is being deleted, or Heliostat does not scale the RayCluster.
func (s *server) statusOf(r *nodepool.OwnedRequest) nodepool.OwnedStatus {
	if r.Deleting {
		return nodepool.OwnedStatus{State: raydemand.RequestExpired, Code: raydemand.CodeDeleting,
			Message: "the request is being deleted and no longer counts; a finalizer delays the deletion"}
	}
	status := r.Current()
	if r.Expired(s.Now()) && status.State != raydemand.RequestExpired {
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
		Pods:   status.Pods,
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
	cluster, known := s.Fleet.View(key)
	if !known {
		return view
	}
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
