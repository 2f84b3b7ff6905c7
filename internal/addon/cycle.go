package addon

import (
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Cycle is one cycle: what was last observed, what was then intended, and what was done.
type Cycle struct {
	View   observe.View
	Intent Intent
	// RereadAt is when the second reading of Ray began, before anything is taken away.
	RereadAt time.Time
	// Paused is why nothing may be taken away, or "".
	Paused   string
	Findings []raydemand.Finding
	Actions  []Action
	Err      error
	// Withheld: the patch was not written, so nothing else is done. Again: the next cycle follows at once.
	Withheld, Again bool
	// Open: a feature has something to do that is not done. Within is for how long the decision stands at most, because
	// a feature has work; 0 for no limit.
	Open   bool
	Within time.Duration

	SeenToPatched time.Duration
	NumGPUs       map[string]GroupNumGPUs
	OptIn         *apiv1.OptIn

	// Awaits counts pods by group that are not launched yet and for which others make room, so that none of lower
	// priority takes it.
	Awaits map[string]int64
	// Idle is what happens to the RayCluster without work, WarmNodes what becomes of nodes without workers.
	Idle      string
	WarmNodes []capacity.NodesPlan
}

// LookWithin lets the next cycle follow within a time.
func (c *Cycle) LookWithin(within time.Duration) {
	if c.Within == 0 || within < c.Within {
		c.Within = within
	}
}

// Intent is what a cycle is going to do: the plan's launches, less those that may turn out unnecessary, and the
// reductions that are due.
type Intent struct {
	// Snapshot is what the plan was computed from, Plan what the planner wants.
	Snapshot planner.Snapshot
	Plan     planner.Plan
	// Launch counts pods per group; Held says per group how many pods the in-flight caps hold back.
	Launch, Held map[string]int
	// Set is what is taken away.
	scaledown.Set
}

// WithoutReductions keeps only the growth.
func (i Intent) WithoutReductions() Intent {
	i.Set = scaledown.Set{}
	return i
}

// ReasonOf returns the planner's first reason for a group.
func (i Intent) ReasonOf(group string) string {
	for _, g := range i.Plan.Groups {
		if g.Name == group && len(g.Reasons) > 0 {
			return g.Reasons[0].Message
		}
	}
	return ""
}
