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
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/promise"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Controller decides for many RayClusters, one cycle at a time for each.
type Controller struct {
	kube   Kube
	dial   head.Dialer
	config Config

	readings readSlots
	promises promise.Registry

	mu      sync.Mutex // guards records, and moving of each record; a cycle locks it while it holds its record
	records map[nodepool.ClusterKey]*record
}

// New returns a controller that is ready for Cycle.
func New(kube Kube, dial head.Dialer, config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("checking the controller's configuration: %w", err)
	}
	return &Controller{
		kube: kube, dial: dial, config: config.withDefaults(),
		records: map[nodepool.ClusterKey]*record{},
	}, nil
}

// Cycle makes one decision for one RayCluster and returns the pause until the next cycle; 0 means that only an event
// starts it. It is idempotent: if nothing has changed, it changes nothing.
func (c *Controller) Cycle(ctx context.Context, key nodepool.ClusterKey) time.Duration {
	r := c.record(key)
	r.mu.Lock()
	defer r.mu.Unlock()
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
		return c.updateRequestsWithoutCluster(key, now)
	}
	if err != nil {
		return c.observeFailed(ctx, r, key, err)
	}
	observed := c.config.Now()
	v.ObserveTook = observed.Sub(now)
	r.remember(&v, c.config)
	intent, err := c.decide(ctx, r, &v)
	if err != nil {
		return 0 // the process ends
	}
	v.PlanTook = c.config.Now().Sub(observed)
	outcome := c.apply(ctx, r, v, intent)
	next := c.pace(r, outcome)
	c.publish(ctx, r, outcome, next)
	c.updateRequests(ctx, r, outcome)
	return next
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
		before := r.gcs.Failures
		v.State, v.StateErr = r.gcs.State(ctx, c.dial, v.Cluster, v.Now,
			head.Timeouts{Call: c.config.GCSTimeout, LongestBackoff: c.config.GCSBackoff})
		if before == 0 && r.gcs.Failures > 0 { // once, until it answers again
			c.config.Log.InfoContext(ctx, "the head does not answer", "cluster", key.String(), "err",
				head.Detail(v.StateErr))
		}
	}
	if v.Live() {
		v.ReadAt = c.config.Now()
		v.Head = membership.LivingHead(v.State.Nodes)
		if r.gcs.Renewed(v.State) {
			r.voidRay()
		}
	}
	v.Members = membership.Join(v.Cluster, v.State.Nodes)
	return v, nil
}

// errOff means that Ray is not read because the mode is off.
var errOff = errors.New("mode is off")

// observeFailed publishes the last decision again, with the error of a cycle that could not read the RayCluster.
func (c *Controller) observeFailed(ctx context.Context, r *record, key nodepool.ClusterKey, err error) time.Duration {
	const pause = time.Second
	d := decision.Decision{Cluster: key, At: c.config.Now()}
	if last := r.decision.Load(); last != nil {
		d = *last
	}
	d.Err, d.Actions, d.SeenToPatched, d.GrowthWanted, d.Next = err.Error(), nil, 0, time.Time{}, pause
	d.ObserveFailed = true
	r.decision.Store(&d)
	c.config.Log.WarnContext(ctx, "cannot observe", "cluster", key.String(), "err", err)
	if c.config.Published != nil {
		c.config.Published(&d)
	}
	return pause
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
	c.mu.Lock()
	delete(c.records, key)
	c.mu.Unlock()
	if c.config.Forgotten != nil && r.decision.Load() != nil {
		c.config.Forgotten(key)
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
}

// Decision returns the latest decision about a cluster.
func (c *Controller) Decision(key nodepool.ClusterKey) (*decision.Decision, bool) {
	c.mu.Lock()
	r := c.records[key]
	c.mu.Unlock()
	if r == nil {
		return nil, false
	}
	d := r.decision.Load()
	return d, d != nil
}

// Decisions returns the latest decision about every cluster, sorted by namespace and name.
func (c *Controller) Decisions() []*decision.Decision {
	var all []*decision.Decision
	for _, r := range c.all() {
		if d := r.decision.Load(); d != nil {
			all = append(all, d)
		}
	}
	slices.SortFunc(all,
		func(a, b *decision.Decision) int { return strings.Compare(a.Cluster.String(), b.Cluster.String()) })
	return all
}
