package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// expectedAt returns when the last pod that a request waits for may have joined: after the median start time of its
// group, counted from when the pod was requested, or, if that is over, after the time that nine in ten needed. Zero if
// it is unknown, or over too.
func expectedAt(plan *planner.RequestPlan, starts *arrival.History, now time.Time) (at time.Time) {
	if plan.State != raydemand.RequestWaiting {
		return time.Time{}
	}
	for _, g := range plan.Groups {
		if g.Waiting == 0 {
			continue
		}
		asked := g.Since
		if asked.IsZero() {
			asked = now
		}
		took := starts.Whole(g.Name)
		if took.Samples == 0 {
			return time.Time{}
		}
		joined, late := took.After(asked)
		if joined.Before(now) {
			joined = late
		}
		if joined.Before(now) {
			return time.Time{}
		}
		if joined.After(at) {
			at = joined
		}
	}
	return at
}
