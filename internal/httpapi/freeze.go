package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Freezer stops all writes to a RayCluster, and allows them again.
type Freezer interface {
	// SetFreeze fails with nodepool.ErrGone when there is no such cluster.
	SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error
}

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
		s.fail(c, &problem{kind: unknownPath, detail: "this is not served here"})
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	if err := s.Freezer.SetFreeze(ctx, key, frozen); err != nil {
		s.fail(c, fmt.Errorf("setting freeze of %s to %v: %w", key, frozen, err))
		return
	}
	write(c, http.StatusOK, "application/json", apiv1.Freeze{Frozen: frozen})
}
