package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// Comparer compares what Heliostat would have with what somebody else writes.
type Comparer interface {
	// Comparison returns what was compared of a cluster; one without groups where nothing is.
	Comparison(key nodepool.ClusterKey) ShadowComparison
}

// GetShadow serves GET …/rayclusters/{name}/shadow.
func (s *server) GetShadow(c *gin.Context, namespace Namespace, name Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	answer := ShadowComparison{}
	if s.Shadow != nil {
		answer = s.Shadow.Comparison(view.Key)
	}
	if answer.Groups == nil {
		answer.Groups = []ShadowGroup{}
	}
	if answer.Differences == nil {
		answer.Differences = []ShadowDifference{}
	}
	write(c, http.StatusOK, "application/json", answer)
}

// Shadow compares what Heliostat would have of a cluster with what somebody else asks for.
func (c *Client) Shadow(ctx context.Context, key nodepool.ClusterKey) (ShadowComparison, error) {
	var answer ShadowComparison
	err := c.call(ctx, http.MethodGet, c.path(key, "shadow"), nil, &answer)
	return answer, err
}
