package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// ModeSetter sets the annotation heliostat.dev/mode of RayClusters.
type ModeSetter interface {
	// SetMode fails with nodepool.ErrGone when there is no such cluster.
	SetMode(ctx context.Context, key nodepool.ClusterKey, mode nodepool.Mode) error
}

// ManageCluster serves PUT …/manage.
func (s *server) ManageCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.setMode(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, nodepool.Managed)
}

// UnmanageCluster serves DELETE …/manage. Shadow counts whatever the namespace says; without an annotation the namespace would.
func (s *server) UnmanageCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.setMode(c, nodepool.ClusterKey{Namespace: namespace, Name: name}, nodepool.Shadow)
}

func (s *server) setMode(c *gin.Context, key nodepool.ClusterKey, mode nodepool.Mode) {
	if s.Modes == nil {
		s.fail(c, &problem{kind: unknownPath, detail: "this is not served here"})
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	if err := s.Modes.SetMode(ctx, key, mode); err != nil {
		s.fail(c, fmt.Errorf("setting the mode of %s to %s: %w", key, mode, err))
		return
	}
	write(c, http.StatusOK, "application/json", apiv1.ModeSet{Mode: mode})
}
