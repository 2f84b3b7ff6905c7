package apiv1

import (
	"heliostat.dev/heliostat/internal/planner"
)

// WhatIfPlan is a plan with changes to the snapshot, and its difference from the current plan.
type WhatIfPlan struct {
	planner.Plan
	Difference planner.Difference `json:"difference"`
}
