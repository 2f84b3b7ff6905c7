package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// GetShadow serves GET …/rayclusters/{name}/shadow.
func (s *server) GetShadow(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	comparison := apiv1.ShadowComparison{}
	if s.Shadow != nil {
		comparison = s.Shadow.Comparison(view.Key)
	}
	comparison.Groups, comparison.Differences = apiv1.List(comparison.Groups), apiv1.List(comparison.Differences)
	s.answers.JSON(c, http.StatusOK, comparison)
}
