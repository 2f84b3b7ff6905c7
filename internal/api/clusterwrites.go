package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// FreezeCluster serves PUT …/freeze.
func (s *server) FreezeCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.setFreeze(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, true)
}

// UnfreezeCluster serves DELETE …/freeze.
func (s *server) UnfreezeCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.setFreeze(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, false)
}

func (s *server) setFreeze(c *gin.Context, key nodepool.ClusterKey, frozen bool) {
	s.write(c, fmt.Sprintf("setting freeze of %s to %v", key, frozen),
		func(ctx context.Context) error { return s.Clusters.SetFreeze(ctx, key, frozen) })
}

// ManageCluster serves PUT …/manage.
func (s *server) ManageCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.setMode(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, nodepool.Managed)
}

// UnmanageCluster serves DELETE …/manage. It sets shadow, which overrides the namespace's mode; without an annotation
// the namespace's mode would apply.
func (s *server) UnmanageCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.setMode(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, nodepool.Shadow)
}

func (s *server) setMode(c *gin.Context, key nodepool.ClusterKey, mode nodepool.Mode) {
	s.write(c, fmt.Sprintf("setting the mode of %s to %s", key, mode),
		func(ctx context.Context) error { return s.Clusters.SetMode(ctx, key, mode) })
}

// write writes to a RayCluster. What says what it does, in an error.
func (s *server) write(c *gin.Context, what string, do func(context.Context) error) {
	if s.Clusters == nil {
		s.notServed(c)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	if err := do(ctx); err != nil {
		s.answers.Fail(c, fmt.Errorf("%s: %w", what, err))
		return
	}
	c.Status(http.StatusNoContent)
}
