// Package controller is the loop: when to observe a RayCluster, in which order to act, and what to publish. Package
// planner makes every scaling decision; this package carries it out as far as the safety rules allow
// (docs/design/0001-the-loop.md). Packages below it observe, guard and report. It uses Kubernetes and Ray only through
// small interfaces (Kube in kube.go, Ray in package head) and must not import their clients.
package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/pace"
	"heliostat.dev/heliostat/internal/controller/promise"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Controller decides for many RayClusters, one cycle at a time for each.
type Controller struct {
	kube   Kube
	dial   head.Dialer
	config Config

	slots    pace.Slots // of cycles that events start
	entries  *head.Entries
	promises promise.Registry
	// guardWrites bounds the guards written to all RayClusters together.
	guardWrites *rate.Limiter
	// reading are the readings of older RayClusters that run beside the loop, at most cap(olderReads).
	reading    sync.WaitGroup
	olderReads chan struct{}

	mu      sync.Mutex // guards all below, and moving of each record; a cycle locks it while it holds its record
	records map[nodepool.ClusterKey]*record
	moving  int // how many records move
}

// New returns a controller that is ready for Cycle.
func New(kube Kube, dial head.Dialer, config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("checking the controller's configuration: %w", err)
	}
	config = config.withDefaults()
	return &Controller{
		kube: kube, dial: dial, config: config, entries: head.NewEntries(),
		guardWrites: rate.NewLimiter(rate.Limit(config.GuardsPerSecond), max(1, int(config.GuardsPerSecond))),
		olderReads:  make(chan struct{}, olderReads),
		records:     map[nodepool.ClusterKey]*record{},
	}, nil
}

// Cycle makes one decision for one RayCluster and returns the pause until the next cycle; 0 means that only an event
// starts it. It is idempotent: if nothing has changed, it changes nothing. After that pause, Stands tells if a cycle is
// needed; after an event of Kubernetes, one always is.
func (c *Controller) Cycle(ctx context.Context, key nodepool.ClusterKey) time.Duration {
	r := c.record(key)
	defer c.enter(ctx, r)()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stands = standing{}
	now := c.config.Now()
	if rest := r.restUntil.Sub(now); rest > 0 {
		return rest
	}
	if wait := c.untilSlot(r, now); wait > 0 {
		return wait
	}
	r.heavyTook = 0
	defer func() { r.restUntil = c.config.Now().Add(r.heavyTook) }()
	v, err := c.observe(ctx, r, key, now)
	if ctx.Err() != nil {
		return 0 // the process ends, and the observation may be incomplete
	}
	if errors.Is(err, nodepool.ErrGone) {
		c.forget(key, r)
		return c.reportWithoutCluster(ctx, key, now)
	}
	if err != nil {
		return c.observeFailed(ctx, r, key, err)
	}
	observed := c.config.Now()
	v.ObserveTook = observed.Sub(now)
	if gone := r.memory.Remember(&v, c.config.memory()); gone != nil {
		r.nodes.Forget(gone)
		r.numGPUs.writes.Forget(gone)
	}
	c.lookAtDraining(ctx, r, &v)
	c.lookAtOlder(ctx, r, &v)
	intent, err := c.decide(ctx, r, &v)
	if err != nil {
		return 0 // the process ends
	}
	v.PlanTook = c.config.Now().Sub(observed)
	outcome := c.apply(ctx, r, v, intent)
	r.memory.Conclude(&outcome.view, &outcome.intent, outcome.nodes.PerHour)
	outcome.jobs = c.readJobs(ctx, r, &outcome.view)
	next := c.pace(r, outcome)
	c.publish(ctx, r, outcome, next)
	c.updateRequests(ctx, r, outcome)
	return next
}

// enter waits until the RayCluster may connect to its head, if it is not connected. Call leave after the cycle.
func (c *Controller) enter(ctx context.Context, r *record) (leave func()) {
	r.mu.Lock()
	connected := r.gcs.Ray != nil
	r.mu.Unlock()
	if connected {
		return func() {}
	}
	return c.entries.Enter(ctx)
}

// observe reads the RayCluster and Ray. If the GCS does not answer, the view says so; that is no error.
func (c *Controller) observe(
	ctx context.Context, r *record, key nodepool.ClusterKey, now time.Time,
) (observation.View, error) {
	v := observation.View{Now: now}
	var err error
	if v.Cluster, err = c.kube.Cluster(ctx, key); err != nil {
		return v, fmt.Errorf("observing %s: %w", key, err)
	}
	r.recreated(v.Cluster.UID)
	v.Mode, v.Why = c.config.modes().Effective(v.Cluster)
	if v.Mode == nodepool.Off {
		r.gcs.Close()
		v.StateErr = errOff
	} else {
		v.State, v.StateErr = c.readRay(ctx, r, v.Cluster, v.Now, 0)
	}
	if v.Live() {
		v.ReadAt = c.config.Now()
		v.Head = membership.LivingHead(v.State.Nodes)
		if r.gcs.Renewed(v.State) {
			r.voidRay()
		}
	}
	if !v.Live() {
		v.DemandUnknown = demandUnknown(v.StateErr)
	}
	v.Members = membership.Join(v.Cluster, v.State.Nodes)
	return v, nil
}

// errOff means that Ray is not read because the mode is off.
var errOff = errors.New("mode is off")

// demandUnknown returns why Ray's demand is unknown, for the reasons of the groups.
func demandUnknown(err error) string {
	why := "Ray does not answer"
	switch {
	case errors.Is(err, errOff):
		why = "the mode is off"
	case errors.Is(err, head.ErrNoAddress):
		why = "there is no head"
	}
	return why + ", so its demand is unknown, and nothing is launched"
}

func (c *Controller) record(key nodepool.ClusterKey) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.records[key]
	if r == nil {
		r = newRecord()
		c.records[key] = r
	}
	return r
}

// all returns the records of all clusters, in no order.
func (c *Controller) all() []*record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.records))
}

// forget drops a cluster that is gone, and its connection. Forgotten is not called for one that never had a decision.
func (c *Controller) forget(key nodepool.ClusterKey, r *record) {
	r.gcs.Close()
	c.promises.Forget(key)
	c.drop(key, r)
	if c.config.Forgotten != nil && r.decision.Load() != nil {
		c.config.Forgotten(key)
	}
}

func (c *Controller) drop(key nodepool.ClusterKey, r *record) {
	c.setMoving(r, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.records, key)
}

// Watch notes what a RayCluster about which another process decides has on its way, and forgets what this process knew
// while it decided itself.
func (c *Controller) Watch(ctx context.Context, key nodepool.ClusterKey) {
	cluster, err := c.kube.Cluster(ctx, key)
	if r := c.known(key); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if errors.Is(err, nodepool.ErrGone) {
			c.forget(key, r)
			return
		}
		c.release(key, r)
	}
	if err != nil {
		c.promises.Forget(key)
		return
	}
	c.promises.Note(&cluster, c.config.Now())
}

// known returns the record of a cluster, or nil.
func (c *Controller) known(key nodepool.ClusterKey) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.records[key]
}

// release drops a cluster about which another process decides now, and its connection.
func (c *Controller) release(key nodepool.ClusterKey, r *record) {
	r.gcs.Close()
	c.drop(key, r)
	if c.config.Released != nil && r.decision.Load() != nil {
		c.config.Released(key)
	}
}

// Close closes all connections to Ray. It waits for running cycles, so end their context first; no cycle may begin
// later.
func (c *Controller) Close() {
	for _, r := range c.all() {
		r.mu.Lock()
		r.gcs.Close()
		r.mu.Unlock()
	}
	c.reading.Wait() // cycles begin readings
}

// pace returns the pause until the next reading, and lets the decision stand until then if it may.
func (c *Controller) pace(r *record, o outcome) time.Duration {
	v := o.view
	if o.again {
		return pace.AfterConflicts(r.memory.Conflicts())
	}
	settings := pace.Settings{FastPoll: c.config.FastPoll, RestPoll: c.config.RestPoll, Jitter: c.config.Jitter,
		ReadsPerSecond: c.config.ReadsPerSecond, CyclesPerSecond: c.config.CyclesPerSecond}
	c.setMoving(r, v.Live() && r.memory.Unsettled(&v, &o.intent))
	next := c.pause(r, o, settings)
	c.stand(r, o, settings, next)
	if r.stands.next > 0 {
		return r.stands.next
	}
	return next
}

// pause returns the pause until the next cycle, if it is not due earlier or later by what readings show.
func (c *Controller) pause(r *record, o outcome, settings pace.Settings) time.Duration {
	v := o.view
	moving, resting := c.counts()
	switch {
	case v.Mode == nodepool.Off:
		return settings.Off()
	case errors.Is(v.StateErr, head.ErrNoAddress):
		return settings.Headless()
	case !v.Live():
		return settings.Silent(r.gcs.RetryAt.Sub(v.Now))
	case r.moving:
		return settings.Moving(moving)
	}
	return settings.Resting(resting)
}

// untilSlot returns how long the cluster must wait for its slot; 0 uses the slot up. A cycle that a reading asks for
// needs none.
func (c *Controller) untilSlot(r *record, now time.Time) time.Duration {
	if r.urgent {
		r.urgent, r.slotAt = false, time.Time{}
		return 0
	}
	if r.slotAt.IsZero() {
		r.slotAt = c.slots.Take(now, c.config.CyclesPerSecond)
	}
	if wait := r.slotAt.Sub(now); wait > 0 {
		return wait
	}
	r.slotAt = time.Time{}
	return 0
}

// setMoving notes whether a RayCluster moves; the caller holds its record.
func (c *Controller) setMoving(r *record, moving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case moving && !r.moving:
		c.moving++
	case !moving && r.moving:
		c.moving--
	}
	r.moving = moving
}

// counts returns the numbers of moving and resting clusters.
func (c *Controller) counts() (moving, resting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moving, len(c.records) - c.moving
}
