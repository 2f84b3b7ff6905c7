package memory

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/breaker"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// Settings are the settings of the loop that matter to what it remembers and decides; controller.Config has their
// meaning and defaults.
type Settings struct {
	Policy                       planner.Policy
	Breakers                     breaker.Settings
	AllocationTimeout, DeadGrace time.Duration
	DrainDeadline, DrainTimeout  time.Duration
	// NodeTimes is how long nodes of each pool take, for all RayClusters. It is the one thing that memories share; it
	// guards itself.
	NodeTimes *arrival.Pools
}
