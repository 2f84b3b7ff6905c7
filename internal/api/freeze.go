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
	if s.Freezer == nil {
		s.notServed(c)
		return
	}
	s.set(c, apiv1.Freeze{Frozen: frozen}, func(ctx context.Context) error {
		if err := s.Freezer.SetFreeze(ctx, key, frozen); err != nil {
			return fmt.Errorf("setting freeze of %s to %v: %w", key, frozen, err)
		}
		return nil
	})
}

// set answers with what an annotation was set to.
func (s *server) set(c *gin.Context, now any, do func(context.Context) error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	if err := do(ctx); err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, now)
}
