package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// GetForecast serves GET …/rayclusters/{name}/forecast.
func (s *server) GetForecast(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	forecast := apiv1.Forecast{Mode: apiv1.ForecastOff}
	if s.Forecasts != nil {
		forecast = s.Forecasts.Forecast(view.Key)
	}
	forecast.Groups = apiv1.List(forecast.Groups)
	s.answers.JSON(c, http.StatusOK, forecast)
}
