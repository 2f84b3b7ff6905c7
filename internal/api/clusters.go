package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// ListClusters serves GET /v1/rayclusters.
func (s *server) ListClusters(c *gin.Context) {
	s.writeList(c, func(View) bool { return true })
}

// ListNamespaceClusters serves GET /v1/namespaces/{namespace}/rayclusters.
func (s *server) ListNamespaceClusters(c *gin.Context, namespace apiv1.Namespace) {
	s.writeList(c, func(v View) bool { return v.Cluster.Namespace == namespace })
}

func (s *server) writeList(c *gin.Context, wanted func(View) bool) {
	views, others, err := listed[apiv1.ClusterList](s, c, s.Fleet.Views(),
		func(v View) string { return v.Cluster.Namespace })
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	items, now := []apiv1.ClusterSummary{}, s.Now()
	for _, view := range views {
		if wanted(view) {
			items = append(items, view.Summary(now))
		}
	}
	for _, other := range others {
		items = append(items, other.Items...)
	}
	compare := func(a, b apiv1.ClusterSummary) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(items, compare)
	// One that moves meanwhile may be in two lists.
	items = slices.CompactFunc(items, func(a, b apiv1.ClusterSummary) bool { return compare(a, b) == 0 })
	s.answers.JSON(c, http.StatusOK, apiv1.ClusterList{Items: items})
}

// GetCluster serves GET …/rayclusters/{name}.
func (s *server) GetCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.show(c, namespace, name, func(view View) any { return view.Status(s.Now()) })
}

// GetSnapshot serves GET …/rayclusters/{name}/snapshot.
func (s *server) GetSnapshot(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	view, err := s.decided(namespace, name)
	s.answer(c, view.Snapshot, err)
}

// show answers with what the view of a RayCluster shows.
func (s *server) show(c *gin.Context, namespace, name string, body func(View) any) {
	view, err := s.view(namespace, name)
	s.answer(c, body(view), err)
}

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
		err = fmt.Errorf("reading nodes: %w", err)
	}
	report.Nodes, report.Pools = apiv1.List(report.Nodes), apiv1.List(report.Pools)
	report.Notes = apiv1.List(report.Notes)
	s.answer(c, report, err)
}

// ListHistory serves GET …/rayclusters/{name}/history.
func (s *server) ListHistory(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	s.show(c, namespace, name, func(view View) any {
		list := apiv1.HistoryList{Items: []apiv1.HistoryEntry{}}
		if s.History != nil {
			list.Items = append(list.Items, s.History.Entries(view.Cluster)...)
		}
		return list
	})
}

// decisionPattern is the ID of a decision; api/openapi.yaml repeats it.
var decisionPattern = regexp.MustCompile(`^[0-9]{1,19}$`)

// GetHistory serves GET …/rayclusters/{name}/history/{id}.
func (s *server) GetHistory(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name, id apiv1.DecisionID) {
	if !decisionPattern.MatchString(id) {
		s.answers.Fail(c, invalidField("id", shorten(id), "the ID of a decision, a number"))
		return
	}
	view, err := s.view(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	known := false
	var snapshot json.RawMessage
	if s.History != nil {
		snapshot, known, err = s.History.Past(view.Cluster, id)
	}
	if err == nil && !known {
		detail := fmt.Sprintf("the history of %s has no decision %s, or not any more", view.Cluster, id)
		err = &problem{Kind: kindUnknownDecision, Detail: detail}
	}
	s.answer(c, snapshot, err)
}

// PlanCluster serves POST …/rayclusters/{name}/plan. It plans on a copy of the last snapshot and stores nothing.
func (s *server) PlanCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	text, err := readJSON(c.Writer, c.Request)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	view, err := s.decided(namespace, name)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	supposed, err := snapshotfile.WhatIf(view.Snapshot, text, "body")
	if err != nil {
		s.answers.Fail(c, invalidInput(err))
		return
	}
	leave, err := s.enterPlan(c.Request.Context())
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	defer leave()
	s.answers.JSON(c, http.StatusOK, planner.Compute(supposed, supposed.Policy))
}
