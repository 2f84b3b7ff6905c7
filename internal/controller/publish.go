package controller

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// publish makes the cycle's decision readable for others.
func (c *Controller) publish(ctx context.Context, r *record, o outcome, next time.Duration) {
	cluster := o.view.Cluster
	cluster.Workers = nil
	d := &decision.Decision{
		Cluster: o.view.Cluster.Key, UID: o.view.Cluster.UID,
		At: o.view.Now, Took: c.config.Now().Sub(o.view.Now),
		Observed: o.view.ObserveTook, Planned: o.view.PlanTook, Waited: o.view.WaitTook,
		Mode: o.view.Mode, Why: o.view.Why, Session: o.view.State.Session,
		Kube: cluster, Pods: decision.PodsOf(o.view.Cluster.Workers), Snapshot: o.intent.Snapshot, Plan: o.intent.Plan,
		Findings: observe.Findings(o.view, slices.Concat(o.view.Cluster.Findings, o.view.State.Findings, o.findings,
			o.intent.Plan.Findings, r.memory.Findings(&o.view))),
		Read:      decision.ReadAt(o.view.ReadAt),
		Paused:    o.paused,
		Idle:      o.idle,
		WarmNodes: o.nodes.Plans,
		Actions:   o.actions, Recent: slices.Clone(r.recent),
		SeenToPatched: o.seenToPatched, GrowthWanted: o.growthWanted, Next: next,
		NumGPUs: o.numGPUs, OptIn: o.optIn, Reverted: o.view.Reverted, Jobs: o.jobs,
	}
	if o.view.StateErr != nil {
		d.RayErr = head.Summary(o.view.StateErr, o.view.Cluster.Head)
		if last := r.decision.Load(); last != nil {
			d.Read = last.Read
		}
	}
	if unwritten := r.memory.Patches.Unwritten(); unwritten != nil {
		d.Unwritten = unwritten.Error()
	}
	if o.err != nil && ctx.Err() == nil { // an error because the process ends is none
		d.Err = o.err.Error()
		c.config.Log.ErrorContext(ctx, "cannot apply", "cluster", d.Cluster.String(), "err", o.err)
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
	c.setMotion(r, resting) // it takes no share from those that move
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
