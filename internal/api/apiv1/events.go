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

// DemandEvent is the content of a demand event.
type DemandEvent struct {
	Namespace string              `json:"namespace"`
	Name      string              `json:"name"`
	Demand    Demand              `json:"demand"`
	Requested []raydemand.Request `json:"requested"`
}

// PlanEvent is the content of a plan event: the parts of a cluster that come from the last decision.
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
