package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// GetRequestedResources serves GET …/request_resources.
func (s *server) GetRequestedResources(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	requests, since, err := s.Requests.ResourceRequests(ctx, key)
	if err != nil {
		err = fmt.Errorf("reading the request for %s: %w", key, err)
	}
	s.answer(c, s.requested(key, requests, since), err)
}

// RequestResources serves POST …/request_resources.
func (s *server) RequestResources(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	key := nodepool.ClusterKey{Namespace: namespace, Name: name}
	requests, err := readPlainRequest(c)
	var since time.Time
	if err == nil {
		since, err = s.setRequest(c, key, requests)
	}
	s.answer(c, s.requested(key, requests, since), err)
}

func readPlainRequest(c *gin.Context) ([]raydemand.Request, error) {
	text, err := readJSON(c.Writer, c.Request)
	if err != nil {
		return nil, err
	}
	request, err := DecodeRequest(text)
	if err != nil {
		return nil, err
	}
	return request.Merged(), nil
}

// ClearRequestedResources serves DELETE …/request_resources.
func (s *server) ClearRequestedResources(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	if _, err := s.setRequest(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, nil); err != nil {
		s.answers.Fail(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// setRequest replaces the request and returns its start. An equal request keeps its start. It is written all the same,
// because what was read may be older than another caller's write.
func (s *server) setRequest(c *gin.Context, key nodepool.ClusterKey, requests []raydemand.Request) (time.Time, error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	before, since, err := s.Requests.ResourceRequests(ctx, key)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the request for %s: %w", key, err)
	}
	if !slices.EqualFunc(before, requests, equalRequest) {
		since = s.Now().Truncate(time.Second)
	}
	return since, s.Requests.SetResourceRequests(ctx, key, requests, since)
}

func equalRequest(a, b raydemand.Request) bool {
	sameSelectors := slices.EqualFunc(a.Selectors, b.Selectors, func(a, b raydemand.Selector) bool {
		return a.String() == b.String()
	})
	return a.Count == b.Count && a.Bundle.Equal(b.Bundle) && a.Slice.Equal(b.Slice) && sameSelectors
}

func (s *server) requested(key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) apiv1.Requested {
	if len(requests) == 0 {
		since = time.Time{}
	}
	return apiv1.Requested{Requested: apiv1.List(requests), Since: apiv1.Time(since), NotScaled: s.notScaled(key)}
}

// notScaled returns why Heliostat does not scale a RayCluster; empty if it does, or if it does not know the cluster
// yet.
func (s *server) notScaled(key nodepool.ClusterKey) string {
	if view, exists := s.Fleet.View(key); exists && view.Mode != nodepool.Managed {
		return view.Why.Message
	}
	return ""
}
