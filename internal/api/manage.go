package api

import (
	"context"
	"fmt"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
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
	s.set(c, apiv1.ModeSet{Mode: mode}, func(ctx context.Context) error {
		if err := s.Modes.SetMode(ctx, key, mode); err != nil {
			return fmt.Errorf("setting the mode of %s to %s: %w", key, mode, err)
		}
		return nil
	})
}
