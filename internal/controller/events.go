package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
	if e.Owner && v.Cluster.Owner.Kind != "" {
		c.kube.OwnerEvent(v.Cluster, e.Warning, e.Reason, e.Message)
	}
}

func (c *Controller) recordDrain(
	ctx context.Context, o *addon.Cycle, w scaledown.DrainRequest, action addon.Action,
) {
	e := drainEvent(w, action)
	c.config.Log.InfoContext(ctx, "drain", "cluster", o.View.Cluster.Key.String(), "group", w.Group, "pod", w.Pod,
		"result", action.Result, "reason", action.Message)
	c.kube.Event(o.View.Cluster, e.Warning, e.Reason, e.Message)
}

// patchEvent returns the Event of a written target. reason is the planner's for the group. pods are those that leave
// the group, and leaving their names with the reasons. The Event has a message and no reason if it is not worth
// writing.
func patchEvent(t nodepool.Target, reason string, pods []string, leaving string) addon.Event {
	change := fmt.Sprintf("group %s: replicas %d → %d: ", t.Group, t.From, t.Replicas)
	if t.TakenBack > 0 {
		stays := fmt.Sprintf("named workers in which Ray has started again stay (%d)", t.TakenBack)
		if t.Replicas-t.From > t.TakenBack {
			stays += "; " + reason
		}
		reason = stays
	}
	switch {
	case len(pods) > 0 && t.Replicas >= t.From:
		return addon.Event{Reason: addon.ReasonReplaced, Message: change + "without " + leaving}
	case len(pods) > 0:
		return addon.Event{Reason: addon.ReasonScaledDown, Message: change + "without " + leaving}
	case t.Replicas < t.From:
		return addon.Event{Reason: addon.ReasonScaledDown, Message: change + reason}
	case t.Replicas == t.From && t.TakenBack > 0:
		return addon.Event{Message: change + reason}
	case t.Replicas == t.From:
		return addon.Event{Message: fmt.Sprintf("group %s: the named workers are gone", t.Group)}
	}
	return addon.Event{Reason: addon.ReasonScaledUp, Message: change + reason}
}

// drainEvent returns the Event of a drain that was asked of a node, with its answer.
func drainEvent(w scaledown.DrainRequest, answer addon.Action) addon.Event {
	e := addon.Event{Reason: addon.ReasonDraining}
	switch answer.Result {
	case addon.ResultRefused:
		e.Reason = addon.ReasonDrainRefused
	case addon.ResultError:
		e.Reason, e.Warning = addon.ReasonDrainFailed, true
	}
	kind := "idle"
	if w.Reason == raydemand.DrainPreemption {
		kind = "until " + clock(w.Deadline)
	}
	e.Message = fmt.Sprintf("group %s: %s (%s): %s", w.Group, w.Pod, kind, answer.Message)
	return e
}

// clock writes a time of day with its zone, because readers are in others.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
