package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Comparer compares what Heliostat would have with what somebody else writes.
type Comparer interface {
	// Comparison returns what was compared of a cluster; one without groups where nothing is.
	Comparison(key nodepool.ClusterKey) apiv1.ShadowComparison
}

// GetShadow serves GET …/rayclusters/{name}/shadow.
func (s *server) GetShadow(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	answer := apiv1.ShadowComparison{}
	if s.Shadow != nil {
		answer = s.Shadow.Comparison(view.Key)
	}
	if answer.Groups == nil {
		answer.Groups = []apiv1.ShadowGroup{}
	}
	if answer.Differences == nil {
		answer.Differences = []apiv1.ShadowDifference{}
	}
	write(c, http.StatusOK, "application/json", answer)
}
