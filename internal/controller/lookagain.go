package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// writtenStands is how long a decision about a RayCluster with ResourceRequests stands at most: each cycle
// writes a part of what is due.
const writtenStands = 5 * time.Second

// Stands reads Ray and reports whether the last decision about the RayCluster stands: nothing has changed on either
// side, and no time has passed that matters, or it is not the RayCluster's turn yet. Then it returns the pause until
// the next reading. Otherwise run a Cycle at once. It takes no worker away and writes nothing: a cycle does, and begins
// with a reading of its own.
//
// Call it only while no event of Kubernetes has come since the last cycle, because it does not look there.
func (c *Controller) Stands(ctx context.Context, key nodepool.ClusterKey) (next time.Duration, stands bool) {
	r := c.known(key)
	if r == nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.allowedAt.IsZero() {
		return 0, false // a cycle waits for the limiter
	}
	now := c.config.Now()
	r.urgent = true // the pauses between readings bound how often that happens
	if !now.Before(r.stands.until) {
		return 0, false
	}
	d := r.decision.Load()
	known := r.stands.seen
	if r.stands.differed || observe.JobsRestartIdleTimes(d.Kube.RayVersion) {
		known = 0 // the clock needs the nodes
	}
	state, err := c.readRay(ctx, r, d.Kube, now, known)
	if err != nil || !r.gcs.Same(state) {
		return 0, false
	}
	repeats := state.Fingerprint == r.stands.seen
	// Not at the time before the reading: the limiter would count the time of a slow reading once more for others.
	if !repeats && (!now.Before(r.stands.earliest) || c.cycles.AllowN(c.config.Now(), earlyCost)) {
		return 0, false
	}
	r.urgent = false
	r.memory.Glance(now, state.Nodes, repeats && !r.stands.differed, d.Kube.RayVersion)
	r.stands.differed = !repeats
	if !repeats {
		if r.stands.earliest.Before(r.stands.until) {
			r.stands.until = r.stands.earliest
		}
		return r.stands.until.Sub(now), true
	}
	if r.motion == active && !r.memory.movement.Recent(now) {
		c.setMotion(r, idle)
	}
	d.Read.Set(c.config.Now())
	d.Pods.Set(nil)
	return c.untilReading(r), true
}

// pace returns the pause until the next reading if the decision stands for a while, because another could only repeat
// it; otherwise that until the next cycle.
func (c *Controller) pace(r *record, o addon.Cycle) time.Duration {
	v := &o.View
	if o.Again {
		return pauseAfterConflicts(max(r.memory.Patches.conflicts, r.numGPUs.conflicts))
	}
	motion, rests := idle, r.atRest(&o)
	switch {
	case !v.Live():
	case o.Intent.Plan.Deferred != nil || r.memory.movement.Recent(v.Now):
		motion = active
	case !rests:
		motion = waiting
	}
	c.setMotion(r, motion)
	n := c.counts()
	switch {
	case v.Mode == nodepool.Off:
		return pauseOff
	case errors.Is(v.StateErr, errNoAddress):
		return pauseHeadless
	case !v.Live():
		return max(c.config.FastPoll, r.gcs.RetryAt.Sub(v.Now))
	case v.State.Fingerprint == 0 || o.Withheld || o.Intent.Plan.Deferred != nil:
		return max(c.config.turn(motion, n), c.config.interval(motion, n))
	}
	stands := c.config.stands(motion, n)
	if rests {
		stands = c.config.IdleStands(n.still)
	}
	// A worker whose machine goes has little time, and a patch that failed is tried again once per second.
	if r.memory.Patches.unwritten != nil || slices.ContainsFunc(v.Members, observe.Member.Goes) {
		stands = min(stands, soon)
	}
	if len(v.Cluster.Owned) > 0 {
		stands = min(stands, writtenStands)
	}
	if o.Within > 0 {
		stands = min(stands, o.Within)
	}
	r.stands = standing{seen: v.State.Fingerprint, until: v.Now.Add(min(stands, untilDeadline(v, &o.Intent))),
		earliest: v.Now.Add(c.config.turn(motion, n))}
	return c.untilReading(r)
}

// untilReading returns the pause until the next reading, which ends with the time for which the decision stands.
func (c *Controller) untilReading(r *record) time.Duration {
	left := max(r.stands.until.Sub(c.config.Now()), c.config.FastPoll)
	return min(c.config.interval(r.motion, c.counts()), left)
}

// atRest reports whether only a change, or one of the deadlines of untilDeadline, can lead to another decision.
func (r *record) atRest(o *addon.Cycle) bool {
	return len(o.Actions) == 0 && o.Paused == "" && o.Err == nil && !o.Open &&
		!r.numGPUs.rest.Resting(o.View.Now) && r.memory.AtRest(&o.View, &o.Intent)
}

// untilAllowed returns how long a cycle must wait for its place in the limiter; 0 uses the place up. One that a reading
// asks for needs none.
func (c *Controller) untilAllowed(r *record, now time.Time) time.Duration {
	if r.urgent {
		r.urgent, r.allowedAt = false, time.Time{}
		return 0
	}
	if r.allowedAt.IsZero() {
		r.allowedAt = now.Add(c.cycles.ReserveN(now, 1).DelayFrom(now))
	}
	if wait := r.allowedAt.Sub(now); wait > 0 {
		return wait
	}
	r.allowedAt = time.Time{}
	return 0
}

// standing is the decision that readings of Ray keep as long as they show the same. Its zero value keeps none.
type standing struct {
	// seen is the reading that the decision rests on.
	seen uint64
	// differed: the last reading showed something else.
	differed bool
	// until is when a cycle is due although nothing has changed, because time alone may change the decision, or when
	// it is the turn of a RayCluster that has changed.
	until time.Time
	// earliest is when a cycle may follow a reading that shows something new, unless until is earlier.
	earliest time.Time
}
