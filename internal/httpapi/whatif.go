package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// PlanCluster serves POST …/rayclusters/{name}/plan. It works on a copy of the last snapshot, and nobody but the caller hears of it.
func (s *server) PlanCluster(c *gin.Context, namespace apiv1.Namespace, name apiv1.Name) {
	body, err := readBody(c)
	if err != nil {
		s.fail(c, err)
		return
	}
	view, err := s.decided(namespace, name)
	if err != nil {
		s.fail(c, err)
		return
	}
	supposed, err := snapshotfile.Suppose(view.Snapshot, body, "body")
	if err != nil {
		s.fail(c, invalidInput(err))
		return
	}
	answer, err := inTime(c.Request.Context(), s.plans, callerOf(c).Name, func(stop <-chan struct{}) (apiv1.SupposingAnswer, bool) {
		plan, made := planner.ComputeUntil(stop, supposed, supposed.Policy)
		if !made {
			return apiv1.SupposingAnswer{}, false
		}
		return apiv1.SupposingAnswer{Plan: plan, Difference: planner.Compare(view.Plan, plan)}, true
	})
	if err != nil {
		s.fail(c, err)
		return
	}
	write(c, http.StatusOK, "application/json", answer)
}
