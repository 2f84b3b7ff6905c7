package controller

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/observation"
)

// publish makes the cycle's decision readable for others.
func (c *Controller) publish(ctx context.Context, r *record, o outcome, next time.Duration) {
	d := &decision.Decision{
		Cluster: o.view.Cluster.Key, UID: o.view.Cluster.UID,
		At: o.view.Now, Took: c.config.Now().Sub(o.view.Now),
		Observed: o.view.ObserveTook, Planned: o.view.PlanTook,
		Mode: o.view.Mode, Why: o.view.Why, Session: o.view.State.Session,
		Kube: o.view.Cluster, Snapshot: o.intent.snapshot, Plan: o.intent.plan,
		Findings: observation.Findings(o.view, slices.Concat(o.view.Cluster.Findings, o.view.State.Findings, o.findings,
			o.intent.plan.Findings, r.shapes.Findings(o.view.Cluster))),
		ReadAt:  o.view.ReadAt,
		Paused:  o.paused,
		Actions: o.actions, Recent: slices.Clone(r.recent),
		SeenToPatched: o.seenToPatched, GrowthWanted: o.growthWanted, Next: next,
		NumGPUs: o.numGPUs, OptIn: o.optIn,
	}
	if o.view.StateErr != nil {
		d.RayErr = head.Summary(o.view.StateErr, o.view.Cluster.Head)
		if last := r.decision.Load(); last != nil {
			d.ReadAt = last.ReadAt
		}
	}
	if r.unwritten != nil {
		d.Unwritten = r.unwritten.Error()
	}
	if o.err != nil && ctx.Err() == nil { // an error because the process ends is none
		d.Err = o.err.Error()
		c.config.Log.ErrorContext(ctx, "cannot apply", "cluster", d.Cluster.String(), "err", o.err)
	}
	r.decision.Store(d)
	c.promises.Publish(d)
	if c.config.Published != nil {
		c.config.Published(d)
	}
}
