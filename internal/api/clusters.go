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
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, view.Cluster(s.now()))
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
