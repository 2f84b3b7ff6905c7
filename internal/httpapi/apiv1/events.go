package apiv1

import (
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The kinds of events.
const (
	EventStatus = "status"
	EventDemand = "demand"
	EventPlan   = "plan"
	EventGone   = "gone"
	EventEnd    = "end"
)

// DemandEvent is what an event of kind demand holds.
type DemandEvent struct {
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	Demand    Demand              `json:"demand"`
	Requested []raydemand.Request `json:"requested"`
}

// PlanEvent is what an event of kind plan holds: of a cluster's document what the last decision says.
type PlanEvent struct {
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	LastCycle *time.Time              `json:"lastCycle"`
	Groups    []Group                 `json:"groups"`
	Summary   []planner.DemandSummary `json:"summary"`
	Unmet     []Unmet                 `json:"unmet"`
	Findings  []raydemand.Finding     `json:"findings"`
	Decisions []Decision              `json:"decisions"`
}
