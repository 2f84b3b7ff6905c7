package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// noOwned replaces a missing Config.Owned.
type noOwned struct{ OwnedRequests }

var errNoOwned = fmt.Errorf("%w: this server does not store any", nodepool.ErrNoRequests)

func (noOwned) All(string) ([]nodepool.OwnedRequest, error) { return nil, errNoOwned }

func (noOwned) List(nodepool.ClusterKey) ([]nodepool.OwnedRequest, error) { return nil, errNoOwned }

func (noOwned) Get(nodepool.ClusterKey, string) (nodepool.OwnedRequest, error) {
	return nodepool.OwnedRequest{}, errNoOwned
}

func (noOwned) Put(context.Context, nodepool.OwnedRequest, Permit) (nodepool.OwnedRequest, bool, error) {
	return nodepool.OwnedRequest{}, false, errNoOwned
}

func (noOwned) Renew(context.Context, nodepool.ClusterKey, string, time.Time, Permit) (nodepool.OwnedRequest, error) {
	return nodepool.OwnedRequest{}, errNoOwned
}

func (noOwned) Delete(context.Context, nodepool.ClusterKey, string, Permit) error { return errNoOwned }

func (s *server) owned() OwnedRequests {
	if s.Owned == nil {
		return noOwned{}
	}
	return s.Owned
}

// ListRequests serves GET /v1/requests.
func (s *server) ListRequests(c *gin.Context, params apiv1.ListRequestsParams) {
	all, unavailable := s.owned().All(string(params.Namespace))
	all = slices.DeleteFunc(all, func(r nodepool.OwnedRequest) bool { return !matches(params.Owner, r.Owner) })
	all, err := visible(s, c, all, func(r nodepool.OwnedRequest) string { return r.Cluster.Namespace })
	if err = cmp.Or(err, unavailable); err != nil {
		s.answers.Fail(c, err)
		return
	}
	list := apiv1.RequestList{Items: []apiv1.OwnedRequest{}}
	for i := range all {
		if r := &all[i]; matches(params.State, s.statusOf(r).State) {
			list.Items = append(list.Items, truncated(s.ownedView(r)))
		}
	}
	s.answers.JSON(c, http.StatusOK, list)
}

// matches reports whether a value passes a filter; an empty filter passes all.
func matches[T ~string](filter, value T) bool { return filter == "" || filter == value }

// ListClusterRequests serves GET …/requests. Without a store of requests with owners it shows the plain request alone.
func (s *server) ListClusterRequests(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	plain, since, err := s.Requests.Get(ctx, key)
	if err != nil {
		s.answers.Fail(c, fmt.Errorf("reading the request for %s: %w", key, err))
		return
	}
	list := apiv1.RequestList{Items: []apiv1.OwnedRequest{}}
	if len(plain) > 0 {
		list.Items = append(list.Items, truncated(s.plainView(key, plain, since)))
	}
	owned, err := s.owned().List(key)
	if err != nil && !errors.Is(err, nodepool.ErrNoRequests) {
		s.answers.Fail(c, err)
		return
	}
	for i := range owned {
		list.Items = append(list.Items, truncated(s.ownedView(&owned[i])))
	}
	s.answers.JSON(c, http.StatusOK, list)
}

// GetRequest serves GET …/request_resources/{id}.
func (s *server) GetRequest(
	c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.RequestID, params apiv1.GetRequestParams,
) {
	wait, err := parseWait(params.Wait)
	if err == nil {
		err = checkID(id)
	}
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	found, err := s.poll(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, id, wait)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.writeRequest(c, http.StatusOK, &found)
}

// poll returns a request as soon as its state is not waiting, or when the time is over.
func (s *server) poll(
	c *gin.Context, key nodepool.ClusterKey, id string, wait time.Duration,
) (nodepool.OwnedRequest, error) {
	if wait > 0 {
		// The answer may come later than the deadline of other answers.
		deadline := time.Now().Add(wait + writeTimeout)
		err := http.NewResponseController(c.Writer).SetWriteDeadline(deadline)
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return nodepool.OwnedRequest{}, fmt.Errorf("waiting for request %s of %s: %w", id, key, err)
		}
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), wait)
	defer cancel()
	if found, err := s.owned().Get(key, id); err != nil || wait == 0 {
		return found, err
	}
	for {
		changes := s.owned().Changes(key, id) // before Get, so that no change in between is lost
		found, err := s.owned().Get(key, id)
		if err != nil || s.statusOf(&found).State != raydemand.RequestWaiting {
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, c.Request.Context().Err() // nil if only the time to wait is over
		case <-changes:
		}
	}
}

func checkID(id string) error {
	if !IsID(id) {
		field := apiv1.FieldError{
			Field:    "id",
			Value:    shorten(id),
			Expected: WantID,
		}
		return invalidFields([]apiv1.FieldError{field})
	}
	return nil
}
