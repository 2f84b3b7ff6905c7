package controller

import (
	"context"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// decide plans for the view, leaves alone what other RayClusters have on their way, and reserves what it launches.
// Cycles of RayClusters run side by side: if others have reserved more since the plan began, it plans again.
func (c *Controller) decide(ctx context.Context, r *record, v *observe.View) (addon.Intent, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		before := c.promises.Before(&v.Cluster, v.Now)
		v.Cluster.Promise(before)
		i, err := c.plan(ctx, r, *v)
		switch {
		case err != nil, v.Mode != nodepool.Managed, len(i.Launch) == 0, v.Cluster.Stock == nil:
			return i, err
		case c.promises.Reserve(&v.Cluster, i.Launch, before, v.Now), attempt == attempts:
			return i, nil
		}
	}
}

// plan plans for the view. It fails only when ctx ends before a heavy plan is computed.
func (c *Controller) plan(ctx context.Context, r *record, v observe.View) (addon.Intent, error) {
	return r.memory.Decide(v, &c.config, func(snapshot *planner.Snapshot) (planner.Plan, error) {
		return c.config.plans.Compute(ctx, snapshot, &r.heavy)
	}, r.features)
}

// paused returns why nothing may be taken away now, or "".
func (c *Controller) paused(r *record, v observe.View) string {
	return r.memory.Paused(v, c.link(r))
}

// doubt returns why Ray's reading does not prove that a node is idle, or "".
func (c *Controller) doubt(r *record, v observe.View) string {
	return r.memory.Doubt(v, c.link(r))
}

func (c *Controller) link(r *record) link {
	return link{Now: c.config.Now(), Since: r.gcs.Since, MaxDataAge: c.config.MaxDataAge}
}
