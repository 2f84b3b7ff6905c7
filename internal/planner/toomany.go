package planner

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// beyondPlans tells of the requests that are too many.
func (r *reporter) beyondPlans() []model.RequestPlan {
	plans := make([]model.RequestPlan, 0, len(r.Beyond))
	for _, of := range r.Beyond {
		plan := model.RequestPlan{ID: of.ID, Owner: of.Owner, Priority: of.Priority, State: raydemand.RequestCapped, Reason: model.Reason{Code: raydemand.CodeTooMany,
			Message: fmt.Sprintf("a plan takes in %d requests of owners with %d shapes together; this one, of %s, comes after those of a higher priority, those satisfied and those older",
				search.MaxOwned, search.MaxOwnedShapes, phrase.Plural(int64(len(of.Requests)), "shape"))}}
		for _, request := range of.Requests {
			plan.Asked = min(plan.Asked+max(request.Count, 0), vector.MaxCount)
		}
		plans = append(plans, plan)
	}
	return plans
}
