// Package observation is one RayCluster as the loop sees it: the View of one cycle, what successive readings add up to
// (idle times, placements that reports do not show yet, Ray resources of new pods), and the planner's Snapshot made of
// both. It must not call anything: it takes readings in and returns values. What it remembers may be lost at any time.
package observation

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// View is what one cycle observed of one cluster.
type View struct {
	Now time.Time
	// ObserveTook is how long reading took, PlanTook how long all plans of the cycle took, and WaitTook how long they
	// waited for large plans of other clusters.
	ObserveTook, PlanTook, WaitTook time.Duration

	Cluster nodepool.Cluster
	Members []membership.Member
	Mode    nodepool.Mode
	Why     planner.Reason
	// State is valid if StateErr is nil; Demand is its demand less what was just placed.
	State    raydemand.State
	StateErr error
	// DemandUnknown says why the demand is unknown; empty if StateErr is nil.
	DemandUnknown string
	ReadAt        time.Time
	Head          *raydemand.Node
	Demand        raydemand.Demand
	// Reverted: another field manager changed replicas since this process wrote them.
	Reverted bool
}

// Live reports whether the GCS answered in this cycle.
func (v View) Live() bool { return v.StateErr == nil }
