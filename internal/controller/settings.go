package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// memorySettings are the settings of the loop that matter to what it remembers and decides; controller.Config has their
// meaning and defaults.
type memorySettings struct {
	Policy                       planner.Policy
	Breakers                     observe.BreakerSettings
	AllocationTimeout, DeadGrace time.Duration
	DrainDeadline, DrainTimeout  time.Duration
	// NodeTimes is how long nodes of each pool take, for all RayClusters. It is the one thing that memories share; it
	// guards itself.
	NodeTimes *arrival.Pools
}
