package controller

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// publish makes the cycle's decision readable for others.
func (c *Controller) publish(ctx context.Context, r *record, o addon.Cycle, next time.Duration) {
	cluster := o.View.Cluster
	cluster.Workers, cluster.Promised = nil, nil // the snapshot has what others have on their way
	d := &addon.Decision{
		Cluster: o.View.Cluster.Key, UID: o.View.Cluster.UID,
		At: o.View.Now, Took: c.config.Now().Sub(o.View.Now),
		Observed: o.View.ObserveTook, Planned: o.View.PlanTook,
		Mode: o.View.Mode, Why: o.View.Why, Session: o.View.State.Session,
		Kube: cluster, Pods: addon.LatestOf(o.View.Cluster.Workers), Snapshot: o.Intent.Snapshot, Plan: o.Intent.Plan,
		Findings: observe.Findings(o.View, slices.Concat(o.View.Cluster.Findings, o.View.State.Findings, o.Findings,
			o.Intent.Plan.Findings, r.memory.Findings(&o.View))),
		Read:      addon.LatestOf(o.View.ReadAt),
		Paused:    o.Paused,
		Idle:      o.Idle,
		Awaits:    o.Awaits,
		WarmNodes: o.WarmNodes,
		Actions:   o.Actions, Recent: slices.Clone(r.recent),
		SeenToPatched: o.SeenToPatched, Next: next,
		NumGPUs: o.NumGPUs, OptIn: o.OptIn, Reverted: o.View.Reverted,
	}
	if o.View.StateErr != nil {
		d.RayErr = HeadSummary(o.View.StateErr, o.View.Cluster.Head)
		if last := r.decision.Load(); last != nil {
			d.Read = last.Read
		}
	}
	if unwritten := r.memory.Patches.unwritten; unwritten != nil {
		d.Unwritten = unwritten.Error()
	}
	if o.Err != nil && ctx.Err() == nil { // an error because the process ends is none
		d.Err = o.Err.Error()
		c.config.Log.ErrorContext(ctx, "cannot apply", "cluster", d.Cluster.String(), "err", o.Err)
	}
	r.decision.Store(d)
	c.promises.Publish(d, c.config.Now())
	if c.config.Published != nil {
		c.config.Published(d)
	}
}

// observeFailed publishes the last decision again, with the error of a cycle that could not read the RayCluster.
func (c *Controller) observeFailed(ctx context.Context, r *record, key nodepool.ClusterKey, err error) time.Duration {
	const pause = time.Second
	c.setMotion(r, idle) // it takes no share from those that move
	d := addon.Decision{Cluster: key, At: c.config.Now()}
	if last := r.decision.Load(); last != nil {
		d = *last
	}
	d.Err, d.Actions, d.SeenToPatched, d.Next = err.Error(), nil, 0, pause
	d.ObserveFailed = true
	r.decision.Store(&d)
	c.config.Log.WarnContext(ctx, "cannot observe", "cluster", key.String(), "err", err)
	if c.config.Published != nil {
		c.config.Published(&d)
	}
	return pause
}
