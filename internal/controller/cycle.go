package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Cycle makes one decision for one RayCluster and returns the pause until the next cycle; 0 means that only an event
// starts it. It is idempotent: if nothing has changed, it changes nothing. After that pause, Stands reports whether the
// decision stands; after an event of Kubernetes, a cycle is always needed.
func (c *Controller) Cycle(ctx context.Context, key nodepool.ClusterKey) time.Duration {
	r := c.record(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stands = standing{}
	now := c.config.Now()
	if rest := r.restUntil.Sub(now); rest > 0 {
		return rest
	}
	if wait := c.untilAllowed(r, now); wait > 0 {
		return wait
	}
	v, err := c.observe(ctx, r, key, now)
	if ctx.Err() != nil {
		return 0 // the process ends, and the observation may be incomplete
	}
	if errors.Is(err, nodepool.ErrGone) {
		c.promises.Forget(key)
		c.forget(key, r)
		return 0
	}
	if err != nil {
		return c.observeFailed(ctx, r, key, err)
	}
	if gone := r.memory.Remember(&v, &c.config); gone != nil {
		maps.DeleteFunc(r.numGPUs.groups, func(group string, _ writtenGPUs) bool { return gone(group) })
		for _, f := range r.features {
			if f.Forget != nil {
				f.Forget(gone)
			}
		}
	}
	for _, f := range r.features {
		if f.Observe != nil {
			f.Observe(ctx, &v)
		}
	}
	observed := c.config.Now()
	v.ObserveTook = observed.Sub(now)
	intent := c.decide(r, &v)
	v.PlanTook = c.config.Now().Sub(observed)
	if heavy(&intent.Snapshot) {
		defer func() { r.restUntil = c.config.Now().Add(v.PlanTook) }()
	}
	outcome := c.apply(ctx, r, v, intent)
	r.memory.turn = ""
	if deferred := outcome.Intent.Plan.Deferred; deferred != nil {
		r.memory.turn = deferred.Next
	}
	next := c.pace(r, outcome)
	c.publish(ctx, r, outcome, next)
	c.updateRequests(ctx, r, outcome)
	return next
}

// observe reads the RayCluster and Ray. If the GCS does not answer, the view says so; that is no error.
func (c *Controller) observe(
	ctx context.Context, r *record, key nodepool.ClusterKey, now time.Time,
) (observe.View, error) {
	v := observe.View{Now: now}
	var err error
	if v.Cluster, err = c.kube.Cluster(ctx, key); err != nil {
		return v, fmt.Errorf("observing %s: %w", key, err)
	}
	c.recreated(r, v.Cluster.UID)
	v.Mode, v.Why = c.config.Effective(v.Cluster)
	if v.Mode == nodepool.Off {
		r.gcs.Close()
		v.StateErr = errOff
	} else {
		v.State, v.StateErr = c.readRay(ctx, r, v.Cluster, v.Now, 0)
	}
	if v.Live() {
		v.ReadAt = c.config.Now()
		v.Head = observe.LivingHead(v.State.Nodes)
		if r.gcs.Renewed(v.State) {
			r.voidRay()
		}
	} else {
		v.DemandUnknown = demandUnknown(v.StateErr)
	}
	v.Members = observe.Join(v.Cluster, v.State.Nodes)
	r.memory.drains.BoundBadGPUs(&v, c.config.DrainBadGPUs, c.config.DrainDeadline)
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
	case errors.Is(err, errNoAddress):
		why = "there is no head"
	}
	return why + ", so its demand is unknown, and nothing is launched"
}
