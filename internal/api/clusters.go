package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// ListClusters serves GET /v1/rayclusters.
func (s *server) ListClusters(c *gin.Context) {
	s.writeList(c, func(View) bool { return true })
}

// ListNamespaceClusters serves GET /v1/namespaces/{namespace}/rayclusters.
func (s *server) ListNamespaceClusters(c *gin.Context, namespace apiv1.Namespace) {
	s.writeList(c, func(v View) bool { return v.Key.Namespace == namespace })
}

func (s *server) writeList(c *gin.Context, wanted func(View) bool) {
	if err := s.incomplete(); err != nil {
		s.answers.Fail(c, err)
		return
	}
	views := slices.SortedFunc(slices.Values(s.Fleet.Views()), byKey)
	views, err := visible(s, c, views, func(v View) string { return v.Key.Namespace })
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	list, now := apiv1.ClusterList{Items: []apiv1.ClusterSummary{}}, s.now()
	for _, view := range views {
		if wanted(view) {
			list.Items = append(list.Items, view.Summary(now))
		}
	}
	s.answers.JSON(c, http.StatusOK, list)
}

// GetCluster serves GET …/rayclusters/{name}.
func (s *server) GetCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.show(c, namespace, name, func(view View) any { return view.Cluster(s.now()) })
}

// GetSnapshot serves GET …/rayclusters/{name}/snapshot.
func (s *server) GetSnapshot(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.decided(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, view.Snapshot)
}

// GetSeries serves GET …/series.
func (s *server) GetSeries(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.show(c, namespace, name, func(view View) any {
		answer := apiv1.Series{Points: []apiv1.SeriesPoint{}}
		if s.Series != nil {
			for _, point := range s.Series.Points(view.Key) {
				answer.Points = append(answer.Points, seriesPoint(point))
			}
		}
		return answer
	})
}

func seriesPoint(p ChartPoint) apiv1.SeriesPoint {
	return apiv1.SeriesPoint{
		At: p.At.UTC(), Capacity: p.Capacity.Bundle(), Used: p.Used.Bundle(),
		Waiting: p.Waiting.Bundle(), Desired: p.Desired.Bundle(),
	}
}

// GetShadow serves GET …/rayclusters/{name}/shadow.
func (s *server) GetShadow(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.show(c, namespace, name, func(view View) any {
		comparison := apiv1.ShadowComparison{}
		if s.Shadow != nil {
			comparison = s.Shadow.Comparison(view.Key)
		}
		comparison.Groups, comparison.Differences = apiv1.List(comparison.Groups), apiv1.List(comparison.Differences)
		return comparison
	})
}

// show answers with what the view of a RayCluster shows.
func (s *server) show(c *gin.Context, namespace, name string, body func(View) any) {
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, body(view))
}
