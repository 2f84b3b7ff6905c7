package controller

import (
	"context"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// apply carries an intent out. A managed cluster gets the actions in steps. In shadow mode nothing is written, and the
// cycle says what a managed cluster would get.
func (c *Controller) apply(ctx context.Context, r *record, v observe.View, i addon.Intent) addon.Cycle {
	o := addon.Cycle{View: v, Intent: i}
	r.conditions.Start()
	defer r.conditions.End()
	c.confirm(ctx, r, &o)
	c.emitConditions(ctx, r, &o)
	if o.View.Mode != nodepool.Managed {
		r.memory.Patches.growthSince = time.Time{}
	}
	for _, step := range steps {
		if (step.anyMode || o.View.Mode == nodepool.Managed) && step.allowed(&o) {
			step.run(c, ctx, r, &o)
		}
	}
	if o.View.Mode == nodepool.Managed {
		r.keepRecent(o.Actions)
	}
	return o
}

// step is one action of a cycle.
type step struct {
	run     func(*Controller, context.Context, *record, *addon.Cycle)
	allowed func(*addon.Cycle) bool // whether the step may run after the steps before it
	anyMode bool                    // it runs for RayClusters that are not managed too
}

// steps are the actions of a cycle in their order. The comment of each row is the reason for its place. The order of
// the addons at one place is that of their rows (cmd/autoscaler/engine/addons.go).
var steps = []step{
	// Users wait for growth, so it goes first. Removals are in the same patch: the operator must see the lower number
	// and the names together.
	{run: (*Controller).patch, allowed: func(o *addon.Cycle) bool { return !o.Withheld }},
	// After the patch, because it must not write in a cycle that changes replicas: a patch is computed from the spec
	// that was read, and another write in between would change it.
	{run: (*Controller).syncNumGPUs, allowed: always, anyMode: true},
	// After the numbers of GPUs, which it names.
	{run: (*Controller).suppose, allowed: always, anyMode: true},
	// After the patch, because users wait for growth. Before drains, each of which may take seconds: a worker with work
	// is in danger as long as it has no guard, and a launch waits for its nodes.
	{run: addons(func(f *addon.Feature) act { return f.BeforeDrains }), allowed: always, anyMode: true},
	// One call for each node, so it must not delay the patch. If the patch failed, the pod of a drained node could not
	// be named either, so nothing is drained.
	{run: (*Controller).drain, allowed: func(o *addon.Cycle) bool { return o.Err == nil && !o.Withheld }},
	// After the patch, which launches replacements, and after all that ends idle workers: these drain workers in use,
	// and keep nodes for work that may come.
	{run: addons(func(f *addon.Feature) act { return f.AfterDrains }), allowed: always, anyMode: true},
	// Reports scale nothing, so they wait for everything that does.
	{run: (*Controller).report, allowed: always},
	// Last, because it may end the RayCluster, and everything before it shows whether it has work.
	{run: addons(func(f *addon.Feature) act { return f.Last }), allowed: always, anyMode: true},
}

// act is a step of a feature.
type act = func(context.Context, *addon.Cycle)

// addons returns the step that runs all features that have one at a place.
func addons(at func(*addon.Feature) act) func(*Controller, context.Context, *record, *addon.Cycle) {
	return func(_ *Controller, ctx context.Context, r *record, o *addon.Cycle) {
		for i := range r.features {
			if run := at(&r.features[i]); run != nil {
				run(ctx, o)
			}
		}
	}
}

func always(*addon.Cycle) bool { return true }

// suppose says what opting in would do with a RayCluster that is neither managed nor being deleted.
func (c *Controller) suppose(_ context.Context, _ *record, o *addon.Cycle) {
	v := &o.View
	if v.Mode == nodepool.Managed || v.Cluster.Deleting {
		return
	}
	managed := v.Cluster
	managed.Mode = nodepool.Managed
	o.OptIn = optIn(&v.Cluster, v.Why, c.config.Obstacle(managed))
	if v.Mode != nodepool.Off && v.Live() {
		addChanges(o.OptIn, o.Intent.Snapshot, o.Intent.Plan, o.NumGPUs)
	}
}
