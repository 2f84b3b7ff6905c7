package controller

import (
	"context"
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
	if !r.slotAt.IsZero() {
		return 0, false // a cycle waits for its slot
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
		if wait > 0 && r.gcs.Same(state) && !c.early.TakeNow(now, c.config.pace().EarlyPerSecond()) {
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
	if !now.Before(r.memory.SettlesAt()) {
		c.setMotion(r, resting)
	}
	n := c.counts()
	if r.stands.next = c.config.pace().Resting(n.still); r.motion == settling {
		r.stands.next = c.config.pace().Settling(n.settling, n.still)
	}
}

// stand lets the decision of a cycle stand, if another could only repeat it for a while.
func (c *Controller) stand(r *record, o addon.Cycle, settings Pace, next time.Duration) {
	r.stands = standing{}
	v := &o.View
	if !v.Live() || v.Mode == nodepool.Off || v.State.Fingerprint == 0 || o.Again || o.Withheld ||
		o.Intent.Plan.Deferred != nil {
		return
	}
	n, earliest := c.counts(), v.Now
	var long time.Duration
	switch {
	case r.motion == moving:
		long, next, earliest = settings.StandsMoving(n.moving), settings.Following(n.moving), v.Now.Add(next)
	case r.atRest(&o):
		long = limited(r, &o, settings.StandsAtRest(n.still))
	default:
		long = limited(r, &o, settings.StandsOpen(n.waiting))
	}
	if r.motion == settling { // read more often than one at rest, but its turn comes no more often
		turn := settings.SettlingTurn(n.moving+n.settling, n.still)
		next, earliest = settings.Settling(n.settling, n.still), v.Now.Add(turn)
	}
	deadline := untilDeadline(v, &o.Intent)
	r.stands = standing{seen: v.State.Fingerprint, next: next, earliest: earliest,
		until: v.Now.Add(min(long, deadline)), deadline: v.Now.Add(deadline)}
}

// limited shortens how long a decision about a RayCluster that does not move stands, because cycles have work to do. A
// worker whose machine goes has little time, and a patch that failed is tried again once per second.
func limited(r *record, o *addon.Cycle, long time.Duration) time.Duration {
	v := &o.View
	if r.memory.Patches.Unwritten() != nil || slices.ContainsFunc(v.Members, observe.Member.Goes) {
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

// atRest reports whether only a change, or one of the deadlines of UntilDeadline, can lead to another decision.
func (r *record) atRest(o *addon.Cycle) bool {
	return len(o.Actions) == 0 && o.Paused == "" && o.Err == nil && !o.Open &&
		r.memory.AtRest(&o.View, &o.Intent)
}
