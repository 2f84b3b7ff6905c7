package api

import (
	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// FollowCluster serves GET …/rayclusters/{name}/events.
func (s *server) FollowCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err == nil {
		err = s.noStreams()
	}
	if err == nil {
		err = s.Hub.FollowCluster(c.Writer, c.Request, view.Key, func() error { return s.guard.Recheck(c) })
	}
	if err != nil {
		s.answers.Fail(c, err)
	}
}

// FollowFleet serves GET /v1/events.
func (s *server) FollowFleet(c *gin.Context) {
	err := s.incomplete()
	if err == nil {
		err = s.noStreams()
	}
	if err == nil {
		review := func(namespaces []string) (everywhere bool, visible map[string]bool, err error) {
			return s.guard.Visible(c, namespaces)
		}
		err = s.Hub.FollowFleet(c.Writer, c.Request, review, func() error { return s.guard.Recheck(c) })
	}
	if err != nil {
		s.answers.Fail(c, err)
	}
}

// noStreams returns an error if this process sends no events.
func (s *server) noStreams() error {
	if s.Hub == nil {
		return &problem{Kind: kindUnavailable, Detail: "this process does not send events"}
	}
	return nil
}
