package apiv1

import (
	"heliostat.dev/heliostat/internal/planner"
)

// SupposingAnswer is the plan of what is supposed, and what it does otherwise than the present one.
type SupposingAnswer struct {
	planner.Plan
	Difference planner.Difference `json:"difference"`
}
