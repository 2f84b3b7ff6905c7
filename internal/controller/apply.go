package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// apply carries an intent out. A managed cluster gets the actions in steps. In shadow mode nothing is written, and the
// outcome says what a managed cluster would get.
func (c *Controller) apply(ctx context.Context, r *record, v observe.View, i Intent) outcome {
	o := outcome{view: v, intent: i}
	r.conditions.Start()
	defer r.conditions.End()
	c.confirm(ctx, r, &o)
	c.emitConditions(ctx, r, o)
	if o.view.Mode != nodepool.Managed {
		r.memory.Patches.WantNoGrowth()
		r.configs.forget()
		c.syncNumGPUs(ctx, r, &o)
		o.optIn = c.optIn(&o)
		if e, begins := decision.WaitingEvent(o.view, o.optIn, &r.conditions); begins {
			c.emit(ctx, o.view, e)
		}
		c.protect(ctx, r, &o)
		c.provision(ctx, r, &o)
		c.consolidate(ctx, r, &o)
		c.keepNodes(ctx, r, &o)
		c.endIdle(ctx, r, &o)
		return o
	}
	for _, step := range steps {
		if step.allowed(&o) {
			step.run(c, ctx, r, &o)
		}
	}
	r.keepRecent(o.actions)
	return o
}

// step is one action of a cycle on a managed RayCluster.
type step struct {
	run     func(*Controller, context.Context, *record, *outcome)
	allowed func(*outcome) bool // whether the step may run after the steps before it
}

// steps are the actions of a cycle in their order. The comment of each row is the reason for its place.
var steps = []step{
	// Users wait for growth, so it goes first. Removals are in the same patch: the operator must see the lower number
	// and the names together.
	{run: (*Controller).patch, allowed: func(o *outcome) bool { return !o.withheld }},
	// After the patch, because it must not write in a cycle that changes replicas: a patch is computed from the spec
	// that was read, and another write in between would change it.
	{run: (*Controller).syncNumGPUs, allowed: always},
	// After the patch, because users wait for growth. Before drains, because a worker with work is in danger as long as
	// it has no guard, and each drain may take seconds. It needs no spec, so it may follow a patch that failed.
	{run: (*Controller).protect, allowed: always},
	// After guards, because a worker with work is in danger without one, and a launch that waits for nodes waits for
	// minutes anyway.
	{run: (*Controller).provision, allowed: func(o *outcome) bool { return !o.withheld }},
	// One call for each node, so it must not delay the patch. If the patch failed, the pod of a drained node could not
	// be named either, so nothing is drained.
	{run: (*Controller).drain, allowed: func(o *outcome) bool { return o.err == nil && !o.withheld }},
	// It takes no pod away, so neither a failed patch nor a pause of reductions stops it. It comes after the patch,
	// which launches the replacements: one call for each node must not delay them.
	{run: (*Controller).drainDeparting, allowed: func(o *outcome) bool { return o.view.Live() && !o.withheld }},
	// After all that makes room or ends idle workers, because it only judges a RayCluster in which nothing moves.
	{run: (*Controller).consolidate, allowed: func(o *outcome) bool { return o.err == nil && !o.withheld }},
	// Nodes without workers serve work that may come, so they wait for everything that serves work that is there.
	{run: (*Controller).keepNodes, allowed: always},
	// Reports scale nothing, so they wait for everything that does. The cluster config and statuses are least urgent.
	{run: (*Controller).report, allowed: always},
	{run: (*Controller).reportClusterConfig, allowed: always},
	{run: (*Controller).reportPolicies, allowed: always},
	// Last, because it ends the RayCluster, and everything before it shows whether it has work.
	{run: (*Controller).endIdle, allowed: func(o *outcome) bool { return o.err == nil && !o.withheld }},
}

func always(*outcome) bool { return true }

// optIn returns what opting in would do; nil for a RayCluster that is managed or is being deleted.
func (c *Controller) optIn(o *outcome) *decision.OptIn {
	v := &o.view
	if v.Mode == nodepool.Managed || v.Cluster.Deleting {
		return nil
	}
	answer := decision.NewOptIn(v.Cluster.Key, v.Why, c.config.modes().OnOptIn(v.Cluster))
	if v.Mode != nodepool.Off && v.Live() {
		answer.Suppose(o.intent.Snapshot, o.intent.Plan, o.numGPUs)
	}
	return answer
}
