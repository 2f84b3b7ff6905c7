package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

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
	compute := func(stop <-chan struct{}) (apiv1.WhatIfPlan, bool) {
		plan, complete := planner.ComputeUntil(stop, supposed, supposed.Policy)
		if !complete {
			return apiv1.WhatIfPlan{}, false
		}
		return apiv1.WhatIfPlan{Plan: plan, Difference: planner.Compare(view.Plan, plan)}, true
	}
	result, err := runPlan(c.Request.Context(), s.plans, callerOf(c).Name, compute)
	if err != nil {
		s.answers.Fail(c, err)
		return
	}
	s.answers.JSON(c, http.StatusOK, result)
}
