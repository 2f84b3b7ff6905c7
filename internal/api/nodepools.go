package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// ListNodepools serves GET /v1/nodepools.
func (s *server) ListNodepools(c *gin.Context) {
	if s.Nodepools == nil {
		s.fail(c, kindUnavailable, "this process does not read nodes")
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	report, err := s.Nodepools.Nodepools(ctx)
	if err != nil {
		s.answers.Fail(c, fmt.Errorf("reading nodes: %w", err))
		return
	}
	report.Nodes, report.Pools, report.Notes = apiv1.List(
		report.Nodes,
	), apiv1.List(
		report.Pools,
	), apiv1.List(
		report.Notes,
	)
	s.answers.JSON(c, http.StatusOK, report)
}
