package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// KeepRequest serves PUT …/request_resources/{id}.
func (s *server) KeepRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID) {
	wanted, err := s.readOwned(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, id)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	stored, created, err := s.Owned.Put(ctx, wanted, func(before *nodepool.OwnedRequest) error {
		return errors.Join(s.checkOwner(c, before), s.checkRoom(&wanted, before))
	})
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	s.writeRequest(c, status, &stored)
}

func (s *server) readOwned(c *gin.Context, key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error) {
	var wanted nodepool.OwnedRequest
	if err := checkWrite(c, id); err != nil {
		return wanted, err
	}
	text, err := readJSON(c.Writer, c.Request)
	if err != nil {
		return wanted, err
	}
	spec, err := DecodeSpec(text)
	if err != nil {
		return wanted, err
	}
	if err := s.checkPriority(c, key, spec.Priority); err != nil {
		return wanted, err
	}
	wanted.Cluster, wanted.ID, wanted.Owner, wanted.RenewedAt = key, id, ownerOf(c), s.Now()
	wanted.Priority, wanted.AllOrNothing, wanted.LeaseSeconds = spec.Priority, spec.AllOrNothing, spec.LeaseSeconds
	wanted.Requests = spec.Bundles
	return wanted, nil
}

// checkWrite refuses a bad ID, and preconditions: a write that ignored them could replace what its caller wants to
// keep.
func checkWrite(c *gin.Context, id string) error {
	for _, header := range []string{"If-Match", "If-None-Match"} {
		if _, there := c.Request.Header[header]; there {
			detail := fmt.Sprintf("header %s is %q, and requests have no ETag: leave it out, or write the "+
				"ResourceRequest %s with its resourceVersion", header, shorten(c.GetHeader(header)), shorten(id))
			return &problem{Kind: kindInvalidRequest, Detail: detail}
		}
	}
	return checkID(id)
}

// ownerOf returns the owner of the requests that the caller of c makes.
func ownerOf(c *gin.Context) string {
	if caller := callerOf(c); caller.Name != "" {
		return caller.Name
	}
	return access.Anybody.Name
}

// DeleteRequest serves DELETE …/request_resources/{id}.
func (s *server) DeleteRequest(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID) {
	err := checkWrite(c, id)
	if err == nil {
		ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
		defer cancel()
		may := func(stored *nodepool.OwnedRequest) error { return s.checkOwner(c, stored) }
		err = s.Owned.Delete(ctx, nodepool.ClusterKey{Namespace: namespace, Name: name}, id, may)
	}
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// checkOwner refuses a request of another owner, unless the caller may patch the RayCluster.
func (s *server) checkOwner(c *gin.Context, stored *nodepool.OwnedRequest) error {
	if stored == nil || stored.Owner == ownerOf(c) {
		return nil
	}
	if may, err := s.mayPatch(c, stored.Cluster); err != nil || may {
		return err
	}
	detail := fmt.Sprintf("request %s belongs to %q; to change requests of others you need the verb patch on %s",
		stored.ID, stored.Owner, rayClusters)
	return &problem{Kind: kindForbidden, Detail: detail}
}

// mayPatch reports whether the caller of c may change the RayCluster itself.
func (s *server) mayPatch(c *gin.Context, key nodepool.ClusterKey) (bool, error) {
	return s.guard.May(c, access.Right{
		Verb: "patch", Group: "ray.io", Resource: "rayclusters", Namespace: key.Namespace, Name: key.Name,
	})
}

func (s *server) writeRequest(c *gin.Context, status int, r *nodepool.OwnedRequest) {
	view := s.ownedView(r)
	view.NotScaled = s.notScaled(r.Cluster)
	s.answers.JSON(c, status, view)
}

// Limits on the requests of one owner in a namespace. An owner gets at most half of the places, and cannot fill the API
// server with expired requests, which stay for nodepool.ExpiredKept. Each replica counts the requests that it knows, so
// slightly more can exist.
const (
	maxActiveOfOwner = nodepool.MaxRequests / 2
	maxStoredOfOwner = 1000
)

// checkRoom refuses a new or renewed request if there are too many. stored is nil for a new one.
func (s *server) checkRoom(wanted, stored *nodepool.OwnedRequest) error {
	owner := wanted.Owner
	if stored != nil {
		if stored.Valid(s.Now()) {
			return nil
		}
		owner = stored.Owner
	}
	namespace := wanted.Cluster.Namespace
	all, err := s.Owned.All(namespace)
	if err != nil {
		return err
	}
	storedOfOwner, activeOfOwner, active := 0, 0, 0
	for i := range all {
		isOwn, isActive := all[i].Owner == owner, all[i].Valid(s.Now())
		storedOfOwner, activeOfOwner = storedOfOwner+count(isOwn), activeOfOwner+count(isOwn && isActive)
		active += count(isActive)
	}
	detail, owner := "", shorten(owner)
	switch {
	case active >= nodepool.MaxRequests:
		detail = fmt.Sprintf("namespace %s already has %d active requests, and no more than %d of a namespace count: "+
			"delete requests that nobody needs", namespace, active, nodepool.MaxRequests)
	case activeOfOwner >= maxActiveOfOwner:
		detail = fmt.Sprintf("%q already has %d active requests in namespace %s, the limit for one owner", owner,
			activeOfOwner, namespace)
	case stored == nil && storedOfOwner >= maxStoredOfOwner:
		detail = fmt.Sprintf("%q already has %d requests in namespace %s, expired ones included, the limit for one "+
			"owner: delete some, or use their IDs again", owner, storedOfOwner, namespace)
	default:
		return nil
	}
	return &problem{Kind: kindTooManyRequests, Detail: detail}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// maxPriority is the highest priority that owners may give their own requests; the lowest is its negative. Values
// beyond are for those who may patch the RayCluster: otherwise one owner could always come before all others.
const maxPriority = 1000

// checkPriority refuses a priority beyond maxPriority, unless the caller may patch the RayCluster.
func (s *server) checkPriority(c *gin.Context, key nodepool.ClusterKey, priority int32) error {
	if -maxPriority <= priority && priority <= maxPriority {
		return nil
	}
	if may, err := s.mayPatch(c, key); err != nil || may {
		return err
	}
	detail := fmt.Sprintf("priority %d: beyond %d and -%d you need the verb patch on %s",
		priority, maxPriority, maxPriority, rayClusters)
	return &problem{Kind: kindForbidden, Detail: detail}
}
