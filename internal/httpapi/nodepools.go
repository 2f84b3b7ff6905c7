package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// NodepoolReader knows the nodes of the Kubernetes cluster and the pools that they are in.
type NodepoolReader interface {
	// Nodepools reads them, or returns what was read a moment ago. ErrUnavailable says that Kubernetes cannot be asked now.
	Nodepools(ctx context.Context) (apiv1.NodepoolsReport, error)
}

// ListNodepools serves GET /v1/nodepools.
func (s *server) ListNodepools(c *gin.Context) {
	if s.Nodepools == nil {
		s.fail(c, &problem{kind: unavailable, detail: "this process does not read nodes"})
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), kubernetesTimeout)
	defer cancel()
	report, err := s.Nodepools.Nodepools(ctx)
	if err != nil {
		s.fail(c, fmt.Errorf("reading nodes: %w", err))
		return
	}
	report.Nodes, report.Pools, report.Notes = list(report.Nodes), list(report.Pools), list(report.Notes)
	write(c, http.StatusOK, "application/json", report)
}
