package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/series"
)

// GetSeries serves GET …/series.
func (s *server) GetSeries(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	answer := apiv1.Series{Points: []apiv1.SeriesPoint{}}
	if s.Series != nil {
		for _, point := range s.Series.Points(view.Key) {
			answer.Points = append(answer.Points, seriesPoint(point))
		}
	}
	s.answers.JSON(c, http.StatusOK, answer)
}

func seriesPoint(p series.Point) apiv1.SeriesPoint {
	return apiv1.SeriesPoint{
		At: p.At.UTC(), Capacity: p.Capacity.Bundle(), Used: p.Used.Bundle(),
		Waiting: p.Waiting.Bundle(), Desired: p.Desired.Bundle(),
	}
}
