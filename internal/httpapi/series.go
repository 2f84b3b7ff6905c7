package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/series"
)

// GetSeries serves GET …/series.
func (s *server) GetSeries(c *gin.Context, namespace Namespace, name Name) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	answer := Series{Points: []SeriesPoint{}}
	if s.Series != nil {
		for _, point := range s.Series.Points(view.Key) {
			answer.Points = append(answer.Points, seriesPoint(point))
		}
	}
	write(c, http.StatusOK, "application/json", answer)
}

func seriesPoint(p series.Point) SeriesPoint {
	return SeriesPoint{
		At: p.At.UTC(), Capacity: p.Capacity.Bundle(), Used: p.Used.Bundle(),
		Waiting: p.Waiting.Bundle(), Desired: p.Desired.Bundle(),
	}
}
