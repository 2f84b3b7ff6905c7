package ownerstatus

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// mostStarts is how many start times are kept for each group.
const mostStarts = 20

// StartTimes remembers how long pods took from their creation until they joined Ray, the latest of each group last.
type StartTimes struct {
	took map[string][]time.Duration
	// waits are the pods that have not joined yet, by UID, and joined those that have: in a new session of Ray they
	// join again.
	waits, joined map[string]bool
}

// Observe adds one complete reading.
func (s *StartTimes) Observe(now time.Time, members []membership.Member) {
	waits, joined := map[string]bool{}, map[string]bool{}
	for _, m := range members {
		joined[m.UID] = s.joined[m.UID] || m.Joined()
		switch {
		case !m.Joined():
			waits[m.UID] = !joined[m.UID]
		case s.waits[m.UID] && !m.CreatedAt.IsZero():
			if s.took == nil {
				s.took = map[string][]time.Duration{}
			}
			took := append(s.took[m.Group], now.Sub(m.CreatedAt))
			s.took[m.Group] = slices.Clone(took[max(0, len(took)-mostStarts):])
		}
	}
	s.waits, s.joined = waits, joined
}

// expected returns when the last pod that a request waits for may have joined: after the median start time of its
// group, counted from when the pod was requested, or, if that is over, after the longest one. Zero if it is unknown,
// or over too.
func (s *StartTimes) expected(plan *planner.RequestPlan, now time.Time) (at time.Time) {
	if plan.State != raydemand.RequestWaiting {
		return time.Time{}
	}
	for _, g := range plan.Groups {
		if g.Waiting == 0 {
			continue
		}
		took := slices.Sorted(slices.Values(s.took[g.Name]))
		if len(took) == 0 {
			return time.Time{}
		}
		asked := g.Since
		if asked.IsZero() {
			asked = now
		}
		joined := asked.Add(took[len(took)/2])
		if joined.Before(now) {
			joined = asked.Add(took[len(took)-1])
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
