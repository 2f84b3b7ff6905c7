package controller

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/pace"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// standing is the decision that readings of Ray keep as long as they show the same. Its zero value keeps none.
type standing struct {
	// seen is the reading that the decision rests on.
	seen uint64
	// until is when a cycle is due although nothing has changed, because time alone may change the decision.
	until time.Time
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

// writtenStands is how long a decision about a RayCluster with ResourceRequests or guards stands at most: each cycle
// writes a part of what is due.
const writtenStands = 5 * time.Second

// Stands reads Ray and reports whether the last decision about the RayCluster stands: nothing has changed on either
// side, and no time has passed that matters, or the last cycle was just now. Then it returns the pause until the next
// reading. Otherwise run a Cycle at once. It takes no worker away and writes nothing: a cycle does, and begins with a
// reading of its own.
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
	jobsRestart, known := observation.JobsRestartIdleTimes(d.Kube.RayVersion), r.stands.seen
	if jobsRestart {
		known = 0 // the clock needs the idle times
	}
	state, err := c.readRay(ctx, r, d.Kube, now, known)
	if err != nil {
		return 0, false
	}
	if state.Fingerprint != r.stands.seen || !r.gcs.Same(state) {
		if wait := r.stands.turn().Sub(now); wait > 0 && r.gcs.Same(state) {
			r.urgent = false
			r.use.Observe(now, state.Nodes)
			if jobsRestart {
				r.idle.Observe(now, state.Nodes, true)
			}
			return wait, true
		}
		return 0, false
	}
	r.use.Repeat(now)
	if jobsRestart {
		r.idle.Observe(now, state.Nodes, true)
	}
	d.Read.Renew(c.config.Now())
	d.Pods.Drop()
	r.urgent = false
	return r.stands.next, true
}

// readRay reads the head's state, without nodes if its fingerprint is known, and logs once that it does not answer.
func (c *Controller) readRay(
	ctx context.Context, r *record, cluster nodepool.Cluster, now time.Time, known uint64,
) (raydemand.State, error) {
	before := r.gcs.Failures
	state, err := r.gcs.State(ctx, c.dial, cluster, now,
		head.Timeouts{Call: c.config.GCSTimeout, LongestBackoff: c.config.GCSBackoff}, known)
	if before == 0 && r.gcs.Failures > 0 { // once, until it answers again
		c.config.Log.InfoContext(ctx, "the head does not answer", "cluster", cluster.Key.String(), "err",
			head.Detail(err))
	}
	return state, err
}

// stand lets the decision of a cycle stand, if another could only repeat it for a while.
func (c *Controller) stand(r *record, o outcome, settings pace.Settings, next time.Duration) {
	r.stands = standing{}
	v := &o.view
	if !v.Live() || v.Mode == nodepool.Off || v.State.Fingerprint == 0 || o.again || o.withheld ||
		o.intent.plan.Deferred != nil {
		return
	}
	moving, resting := c.counts()
	long, earliest := settings.StandsAtRest(resting), v.Now
	if len(v.Cluster.Owned) > 0 || c.mayGuard(r, *v) {
		long = min(long, writtenStands)
	}
	if v.Cluster.Consolidate.Valid() && len(r.consolidation.Moves()) > 0 {
		long = min(long, c.config.Consolidation.LookEvery)
	}
	switch {
	case r.moving:
		long, next, earliest = settings.StandsMoving(moving), settings.Following(moving), v.Now.Add(next)
	case !r.atRest(o):
		long = settings.StandsOpen()
	}
	long = r.upgradeStands(v.Now, long)
	r.stands = standing{seen: v.State.Fingerprint, next: next, earliest: earliest,
		until: v.Now.Add(min(long, untilDeadline(v, o.intent.snapshot)))}
}

// atRest reports whether only a change, or one of the deadlines of untilDeadline, can lead to another decision. What is
// not known to be at rest is not.
func (r *record) atRest(o outcome) bool {
	v, plan := &o.view, &o.intent.plan
	demand := &v.State.Demand
	return len(demand.Requests)+len(demand.Gangs) == 0 &&
		len(plan.Launch)+len(o.intent.launch)+len(o.intent.held) == 0 &&
		!o.intent.Any() && len(o.intent.nodes.Waits) == 0 && len(o.actions) == 0 &&
		o.paused == "" && o.err == nil && r.unwritten == nil && r.provisionErr == nil && r.freshErr == nil &&
		r.nodes.Settled() &&
		len(plan.InfeasibleRequests)+len(plan.InfeasibleGangRequests)+len(plan.InfeasibleRequestResources) == 0 &&
		!r.lag.Active() && !r.guard.Doubts() && len(r.drains) == 0 && len(r.named) == 0 &&
		r.reverts.Pause(v.Now) == "" && len(r.refusals.Bounds(v.Now)) == 0 &&
		v.Cluster.OwnedUnknown+v.Cluster.PolicyUnknown == "" && v.Cluster.Writable() == nil &&
		!slices.ContainsFunc(plan.Groups, func(g planner.GroupPlan) bool { return g.Desired != g.Current }) &&
		!slices.ContainsFunc(o.intent.snapshot.Groups, func(g planner.Group) bool { return g.Closed != "" }) &&
		!slices.ContainsFunc(o.intent.snapshot.Nodes, func(n planner.Node) bool {
			return n.State != planner.Running && n.State != planner.Idle
		}) &&
		!slices.ContainsFunc(v.Members, func(m membership.Member) bool {
			return !m.Joined() || !m.Counted() || m.Going != nil || m.Node.Status == raydemand.Draining
		})
}

// untilDeadline returns how long it takes until a worker has been idle for longer than its timeout, or a lease is over.
func untilDeadline(v *observation.View, snapshot planner.Snapshot) time.Duration {
	const never, over = time.Hour, time.Millisecond // the longest, and what makes a time longer than its limit
	next := never
	sooner := func(left time.Duration) {
		if left >= 0 {
			next = min(next, left+over)
		}
	}
	timeouts := map[string]time.Duration{}
	for i := range v.Cluster.Groups {
		name := v.Cluster.Groups[i].Name
		timeouts[name] = membership.IdleTimeout(v.Cluster, name)
	}
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		if n.IdleSeconds > 0 {
			sooner(timeouts[n.Group] - time.Duration(n.IdleSeconds*float64(time.Second)))
		}
	}
	for i := range v.Cluster.Owned {
		if ends := v.Cluster.Owned[i].ExpiresAt(); !ends.IsZero() {
			sooner(ends.Sub(v.Now))
		}
	}
	return next
}
