package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// outcome is the result of one cycle: what was last observed, what was then intended, and what was done.
type outcome struct {
	view   observe.View
	intent Intent
	// rereadAt is when the second reading of Ray began, before anything is taken away.
	rereadAt time.Time
	paused   string
	findings []raydemand.Finding
	actions  []decision.Action
	err      error
	// idle is what happens to the RayCluster without work.
	idle string
	// nodes is what becomes of nodes without workers.
	nodes capacity.NodesDecision
	// withheld: the patch was not written, so nothing else is done. again: the next cycle follows at once.
	withheld, again bool
	seenToPatched   time.Duration
	growthWanted    time.Time
	numGPUs         map[string]decision.GroupNumGPUs
	optIn           *decision.OptIn
	jobs            *jobs.Held
}
