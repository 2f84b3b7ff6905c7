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
		known = 0 // the clocks need the nodes
	}
	state, err := c.readRay(ctx, r, d.Kube, now, known)
	if err != nil {
		return 0, false
	}
	if state.Fingerprint != r.stands.seen || !r.gcs.Same(state) {
		wait := r.stands.turn().Sub(now)
		// Not at the time before the reading: the limiter would count the time of a slow reading once more for others.
		if wait > 0 && r.gcs.Same(state) && !c.cycles.AllowN(c.config.Now(), earlyCost) {
			r.urgent, r.stands.differed = false, true
			r.memory.Glance(now, state.Nodes, false, d.Kube.RayVersion)
			return wait, true
		}
		return 0, false
	}
	r.memory.Glance(now, state.Nodes, !r.stands.differed, d.Kube.RayVersion)
	r.stands.differed = false
	c.settle(r, now)
	d.Read.Renew(c.config.Now())
	d.Pods.Drop()
	r.urgent = false
	return r.stands.pause(c.config.Now(), c.config.FastPoll), true
}

// settle adapts the pause of a RayCluster that settles to how many do, and lets it rest when its last change was a
// while ago.
func (c *Controller) settle(r *record, now time.Time) {
	if r.motion != settling {
		return
	}
	if !now.Before(r.memory.movement.SettlesAt()) {
		c.setMotion(r, idle)
	}
	r.stands.next = c.config.interval(r.motion, c.counts())
}

// stand lets the decision of a cycle stand, if another could only repeat it for a while.
func (c *Controller) stand(r *record, o addon.Cycle, settings *Config) {
	r.stands = standing{}
	v := &o.View
	if !v.Live() || v.Mode == nodepool.Off || v.State.Fingerprint == 0 || o.Again || o.Withheld ||
		o.Intent.Plan.Deferred != nil {
		return
	}
	n := c.counts()
	long := settings.stands(active, n)
	switch {
	case r.motion == active:
	case r.atRest(&o):
		long = limited(r, &o, settings.stands(idle, n))
	default:
		long = limited(r, &o, settings.stands(waiting, n))
	}
	deadline := untilDeadline(v, &o.Intent)
	r.stands = standing{seen: v.State.Fingerprint, next: settings.interval(r.motion, n),
		earliest: v.Now.Add(settings.turn(r.motion, n)),
		until:    v.Now.Add(min(long, deadline)), deadline: v.Now.Add(deadline)}
}

// limited shortens how long a decision about a RayCluster that does not move stands, because cycles have work to do. A
// worker whose machine goes has little time, and a patch that failed is tried again once per second.
func limited(r *record, o *addon.Cycle, long time.Duration) time.Duration {
	v := &o.View
	if r.memory.Patches.unwritten != nil || slices.ContainsFunc(v.Members, observe.Member.Goes) {
		long = min(long, soon)
	}
	if len(v.Cluster.Owned) > 0 {
		long = min(long, writtenStands)
	}
	if o.Within > 0 {
		long = min(long, o.Within)
	}
	return long
}

// atRest reports whether only a change, or one of the deadlines of untilDeadline, can lead to another decision.
func (r *record) atRest(o *addon.Cycle) bool {
	return len(o.Actions) == 0 && o.Paused == "" && o.Err == nil && !o.Open &&
		!r.numGPUs.rest.Resting(o.View.Now) && r.memory.AtRest(&o.View, &o.Intent)
}

// pace returns the pause until the next reading, and lets the decision stand until then if it may.
func (c *Controller) pace(r *record, o addon.Cycle) time.Duration {
	v := o.View
	if o.Again {
		return pauseAfterConflicts(max(r.memory.Patches.conflicts, r.numGPUs.conflicts))
	}
	settings := &c.config
	motion := r.memory.Motion(&v, &o.Intent)
	if motion == idle && v.Live() && !r.atRest(&o) {
		motion = waiting
	}
	c.setMotion(r, motion)
	next := c.pause(r, o, settings)
	c.stand(r, o, settings)
	if r.stands.next > 0 {
		return r.stands.pause(c.config.Now(), c.config.FastPoll)
	}
	return next
}

// pause returns the pause until the next cycle, if it is not due earlier or later by what readings show.
func (c *Controller) pause(r *record, o addon.Cycle, settings *Config) time.Duration {
	v := o.View
	n := c.counts()
	switch {
	case v.Mode == nodepool.Off:
		return pauseOff
	case errors.Is(v.StateErr, errNoAddress):
		return pauseHeadless
	case !v.Live():
		return max(settings.FastPoll, r.gcs.RetryAt.Sub(v.Now))
	case r.motion == active:
		return settings.turn(active, n)
	}
	return settings.IdleInterval(n.still)
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
	// differed: the last reading showed something else, and the RayCluster waits for its turn.
	differed bool
	// until is when a cycle is due although nothing has changed, because time alone may change the decision.
	until time.Time
	// deadline is when a worker has been idle for long enough, or a lease is over. It is not before until.
	deadline time.Time
	// earliest is when a cycle may follow a reading that shows something new, unless until is earlier.
	earliest time.Time
	// next is the pause between two readings.
	next time.Duration
}

// turn is when a cycle may follow a reading that shows something new.
func (s *standing) turn() time.Time {
	if s.until.Before(s.earliest) {
		return s.until
	}
	return s.earliest
}

// pause is that until the next reading, or until the deadline, if that is sooner and not within least. The pool of
// cycles varies pauses by a tenth, so this one ends before the deadline, and another one follows.
func (s *standing) pause(now time.Time, least time.Duration) time.Duration {
	left := s.deadline.Sub(now) * 9 / 10
	return min(s.next, max(left, least))
}
