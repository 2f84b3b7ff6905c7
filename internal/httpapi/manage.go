package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/httpapi/limits"
	"heliostat.dev/heliostat/pkg/nodepool"
)

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
	if s.Modes == nil {
		s.notServed(c)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), limits.KubernetesTimeout)
	defer cancel()
	if err := s.Modes.SetMode(ctx, key, mode); err != nil {
		s.answers.Fail(c, fmt.Errorf("setting the mode of %s to %s: %w", key, mode, err))
		return
	}
	s.answers.JSON(c, http.StatusOK, apiv1.ModeSet{Mode: mode})
}
