package controller

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Reasons of Events on a RayCluster. They are stable: alerts and scripts may match them. The codes of package mode are
// Event reasons too, when they keep a cluster from being managed.
const (
	EventScaledUp         = "ScaledUp"
	EventScaledDown       = "ScaledDown"
	EventReplaced         = "WorkersReplaced"
	EventPatchFailed      = "PatchFailed"
	EventDraining         = "Draining"
	EventDrainRefused     = "DrainRefused"
	EventDrainFailed      = "DrainFailed"
	EventCapped           = "Capped"
	EventImpossible       = "Impossible"
	EventInFlightCap      = "InFlightCap"
	EventGroupFailing     = "GroupFailing"
	EventGCSUnavailable   = "GCSUnavailable"
	EventReductionsPaused = "ReductionsPaused"
	EventNumGPUsWritten   = "NumGPUsWritten"
	EventNumGPUsRefused   = "NumGPUsRefused"
	EventRequestExpired   = "RequestExpired"
	EventWaitingInShadow  = "WaitingInShadow"
)

// emitConditions emits each lasting condition once, when it begins.
func (c *Controller) emitConditions(ctx context.Context, r *record, o outcome) {
	v := o.view
	if v.Mode == nodepool.Off {
		return
	}
	c.emitMode(ctx, r, v)
	if r.gcs.Failures > 3 && v.Cluster.Head.Ready {
		c.emitOnce(ctx, r, v, true, EventGCSUnavailable,
			"no scaling while Ray's GCS cannot be read: "+head.Summary(r.gcs.LastErr, v.Cluster.Head))
	}
	if v.Mode != nodepool.Managed {
		return
	}
	if o.paused != "" && r.guard.Doubts() {
		c.emitOnce(ctx, r, v, true, EventReductionsPaused, o.paused)
	}
	for _, entry := range r.drains.Resumed() {
		c.emitOnce(ctx, r, v, false, EventDraining,
			fmt.Sprintf("%s: its node is already draining, and its group is above its maximum; the deadline is %s",
				entry.Pod, entry.Deadline.UTC().Format(time.TimeOnly)))
	}
	if r.freshReads.failures > 0 {
		c.emitOnce(ctx, r, v, true, EventReductionsPaused,
			fmt.Sprintf("reading the RayCluster again before a reduction failed: %v", r.freshErr))
	}
	c.emitUnmet(ctx, r, v, o.intent.plan)
	for _, group := range slices.Sorted(maps.Keys(o.intent.held)) {
		c.emitOnce(ctx, r, v, false, EventInFlightCap,
			fmt.Sprintf("group %s: %d pods are waiting for earlier ones to join (maxInFlight)", group,
				o.intent.held[group]))
	}
	for _, g := range v.Cluster.Groups {
		if r.breakers.Open(g.Name, v.Now) {
			b := r.breakers[g.Name]
			c.emitOnce(ctx, r, v, true, EventGroupFailing,
				fmt.Sprintf("group %s: %s; no launches until %s", g.Name, b.Reason,
					b.OpenUntil.UTC().Format(time.TimeOnly)))
		}
	}
}

// modeUnknownGrace is how long the mode may be unknown before an Event reports it: that of a new namespace or owner is
// unknown for a moment.
const modeUnknownGrace = 5 * time.Second

// modeUnknown reports whether a code means that an object which the mode depends on has not been read.
func modeUnknown(code string) bool { return code == mode.NamespaceUnknown || code == mode.QueueUnknown }

// emitMode reports why a cluster is not managed, unless somebody chose that or never set a mode.
func (c *Controller) emitMode(ctx context.Context, r *record, v observation.View) {
	switch code := v.Why.Code; {
	case v.Mode != nodepool.Shadow || code == mode.AsAsked || code == mode.NotAsked || code == mode.ReadOnly:
	case modeUnknown(code) && !r.conditions.lasted(v.Now, code, modeUnknownGrace):
	default:
		c.emitOnce(ctx, r, v, code == mode.SidecarAlive || modeUnknown(code), code, v.Why.Message)
	}
}

// maxUnmetEvents bounds the unmet demands that get an Event and a log line each: there may be as many as there are
// shapes.
const maxUnmetEvents = 20

// emitUnmet reports the first unmet demands, and how many more there are.
func (c *Controller) emitUnmet(ctx context.Context, r *record, v observation.View, plan planner.Plan) {
	emitted, further := 0, map[string]int{}
	emit := func(what string, reason planner.Reason) {
		event, warning := EventCapped, false
		switch reason.Code {
		case planner.Impossible:
			event, warning = EventImpossible, true
		case planner.CoolingDown:
			// The message counts seconds down and would change every minute; GroupFailing reports the group.
			reason.Message = "a group that could serve it failed recently and gets no launches for a while"
		}
		if emitted++; emitted > maxUnmetEvents {
			further[event]++
			return
		}
		c.emitOnce(ctx, r, v, warning, event, what+": "+reason.Message)
	}
	for _, u := range plan.InfeasibleRequests {
		emit(planner.Describe(raydemand.Request{Bundle: u.Bundle, Slice: u.Slice}), u.Reason)
	}
	for _, u := range plan.InfeasibleGangRequests {
		emit("gang "+u.ID, u.Reason)
	}
	for _, u := range plan.InfeasibleRequestResources {
		what := "request_resources " + planner.Describe(raydemand.Request{Bundle: u.Bundle, Slice: u.Slice})
		if u.AskedBy != "" {
			what += " (" + u.AskedBy + ")"
		}
		emit(what, u.Reason)
	}
	for _, event := range slices.Sorted(maps.Keys(further)) {
		c.emitOnce(ctx, r, v, event == EventImpossible, event,
			fmt.Sprintf("further demands: %d more; `autoscaler explain` lists the reasons", further[event]))
	}
}

// emitOnce emits the Event of a lasting condition when it begins. The key is the reason with the subject of the
// message, so that two groups do not hide each other.
func (c *Controller) emitOnce(
	ctx context.Context, r *record, v observation.View, warning bool, reason, message string,
) {
	subject, _, _ := strings.Cut(message, ":")
	if !r.conditions.raise(v.Now, reason+"/"+subject, message) {
		return
	}
	c.emit(ctx, v, warning, reason, message)
}

func (c *Controller) emit(ctx context.Context, v observation.View, warning bool, reason, message string) {
	level := slog.LevelInfo
	if warning {
		level = slog.LevelWarn
	}
	c.config.Log.Log(ctx, level, "state", "cluster", v.Cluster.Key.String(), "reason", reason, "message", message)
	c.kube.Event(v.Cluster, warning, reason, message)
}

// recordPatch records a patch: one action, one log line and one Event per group.
func (c *Controller) recordPatch(
	ctx context.Context, o *outcome, targets []nodepool.Target, at time.Time, took time.Duration,
) {
	for _, t := range targets {
		pods, leaving := o.intent.LeavingText(t.Group)
		event, message := EventScaledUp, fmt.Sprintf("group %s: replicas %d → %d: %s", t.Group, t.From, t.Replicas,
			o.intent.reasonOf(t.Group))
		switch {
		case len(pods) > 0 && t.Replicas >= t.From:
			event, message = EventReplaced, fmt.Sprintf("group %s: replicas %d → %d: without %s", t.Group, t.From,
				t.Replicas, leaving)
		case len(pods) > 0:
			event, message = EventScaledDown, fmt.Sprintf("group %s: replicas %d → %d: without %s", t.Group, t.From,
				t.Replicas, leaving)
		case t.Replicas < t.From:
			event = EventScaledDown
		case t.Replicas == t.From:
			// logged, not worth an Event
			event, message = "", fmt.Sprintf("group %s: the named workers are gone", t.Group)
		}
		o.actions = append(o.actions,
			decision.Action{At: at, Kind: decision.ActionPatch, Result: decision.ResultOK, Group: t.Group,
				From: t.From, To: t.Replicas, Pods: pods, Message: message, Took: took})
		c.config.Log.InfoContext(ctx, "patched", "cluster", o.view.Cluster.Key.String(), "group", t.Group,
			"from", t.From, "to", t.Replicas, "pods", pods, "reason", message)
		if event != "" {
			c.kube.Event(o.view.Cluster, false, event, message)
		}
	}
}

func (c *Controller) recordDrain(ctx context.Context, o *outcome, w reduction.DrainRequest, action decision.Action) {
	event, warning := EventDraining, false
	switch action.Result {
	case decision.ResultRefused:
		event = EventDrainRefused
	case decision.ResultError:
		event, warning = EventDrainFailed, true
	}
	kind := "idle"
	if w.Reason == raydemand.DrainPreemption {
		kind = "until " + w.Deadline.UTC().Format(time.TimeOnly)
	}
	message := fmt.Sprintf("group %s: %s (%s): %s", w.Group, w.Pod, kind, action.Message)
	c.config.Log.InfoContext(ctx, "drain", "cluster", o.view.Cluster.Key.String(), "group", w.Group, "pod", w.Pod,
		"result", action.Result, "reason", action.Message)
	c.kube.Event(o.view.Cluster, warning, event, message)
}
