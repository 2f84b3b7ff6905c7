package controller

import (
	"context"
	"log/slog"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
)

// emitConditions emits each lasting condition once, when it begins.
func (c *Controller) emitConditions(ctx context.Context, r *record, o addon.Cycle) {
	lasting := lasting{View: o.View, Drains: r.memory.drains, Plan: o.Intent.Plan, Held: o.Intent.Held,
		Breakers: r.memory.breakers, Reverts: r.memory.Patches.reverts.Texts(o.View.Now), FreshErr: r.memory.fresh.err}
	if r.gcs.Failures > 3 && o.View.Cluster.Head.Ready {
		lasting.HeadFails = HeadSummary(r.gcs.LastErr, o.View.Cluster.Head)
	}
	if r.memory.guard.Doubts() {
		lasting.Doubt = o.Paused
	}
	for _, e := range lasting.Events(&r.conditions) {
		c.emit(ctx, o.View, e)
	}
}

// emitOnce emits the Event of a lasting condition when it begins.
func (c *Controller) emitOnce(ctx context.Context, r *record, v observe.View, e addon.Event) {
	if r.conditions.Begins(v.Now, e) {
		c.emit(ctx, v, e)
	}
}

func (c *Controller) emit(ctx context.Context, v observe.View, e addon.Event) {
	level := slog.LevelInfo
	if e.Warning {
		level = slog.LevelWarn
	}
	c.config.Log.Log(ctx, level, "state", "cluster", v.Cluster.Key.String(), "reason", e.Reason, "message", e.Message)
	c.kube.Event(v.Cluster, e.Warning, e.Reason, e.Message)
}

func (c *Controller) recordDrain(
	ctx context.Context, o *addon.Cycle, w scaledown.DrainRequest, action addon.Action,
) {
	e := drainEvent(w, action)
	c.config.Log.InfoContext(ctx, "drain", "cluster", o.View.Cluster.Key.String(), "group", w.Group, "pod", w.Pod,
		"result", action.Result, "reason", action.Message)
	c.kube.Event(o.View.Cluster, e.Warning, e.Reason, e.Message)
}
