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
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Reasons of Events on a RayCluster. They are stable: alerts and scripts may match them. The codes of mode.go are
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

// tellStates tells the states that last, each once when it begins.
func (c *Controller) tellStates(ctx context.Context, r *record, o outcome) {
	v := o.view
	if v.mode == nodepool.Off {
		return
	}
	c.tellMode(ctx, r, v)
	if r.line.failures > 3 && v.cluster.Head.Ready {
		c.raise(ctx, r, v, true, EventGCSUnavailable, "no scaling while Ray's GCS is not read: "+plainly(r.line.lastErr, v.cluster.Head))
	}
	if v.mode != nodepool.Managed {
		return
	}
	if o.paused != "" && r.guard.doubts() {
		c.raise(ctx, r, v, true, EventReductionsPaused, o.paused)
	}
	for _, entry := range r.drains.resumed() {
		c.raise(ctx, r, v, false, EventDraining, fmt.Sprintf("%s: its node drains already, and its group is above its maximum: it has until %s",
			entry.pod, entry.deadline.UTC().Format(time.TimeOnly)))
	}
	if r.looks.failures > 0 {
		c.raise(ctx, r, v, true, EventReductionsPaused, fmt.Sprintf("the second look failed: %v", r.lookErr))
	}
	c.tellUnmet(ctx, r, v, o.intent.plan)
	for _, group := range slices.Sorted(maps.Keys(o.intent.held)) {
		c.raise(ctx, r, v, false, EventInFlightCap, fmt.Sprintf("group %s: %d pods wait for earlier ones to join", group, o.intent.held[group]))
	}
	for _, g := range v.cluster.Groups {
		if r.breakers.open(g.Name, v.now) {
			b := r.breakers[g.Name]
			c.raise(ctx, r, v, true, EventGroupFailing, fmt.Sprintf("group %s: %s; no launches until %s", g.Name, b.reason, b.openUntil.UTC().Format(time.TimeOnly)))
		}
	}
}

// unreadGrace is how long what the mode depends on may be unread before an Event says so: a new namespace or owner is,
// for a moment.
const unreadGrace = 5 * time.Second

// unread reports whether a code says that something has not been read that the mode depends on.
func unread(code string) bool { return code == mode.NamespaceUnknown || code == mode.QueueUnknown }

// tellMode reports why a cluster is not managed, where that is not what somebody asked for or did not ask for.
func (c *Controller) tellMode(ctx context.Context, r *record, v view) {
	switch code := v.why.Code; {
	case v.mode != nodepool.Shadow || code == mode.AsAsked || code == mode.NotAsked || code == mode.ReadOnly:
	case unread(code) && !r.conditions.lasted(v.now, code, unreadGrace):
	default:
		c.raise(ctx, r, v, code == mode.SidecarAlive || unread(code), code, v.why.Message)
	}
}

// mostUnmetTold bounds the demands that are told one by one: each is an Event and a line, and there may be as many as there are shapes.
const mostUnmetTold = 20

// tellUnmet tells the first demands that are not served, and how many more there are.
func (c *Controller) tellUnmet(ctx context.Context, r *record, v view, plan planner.Plan) {
	told, further := 0, map[string]int{}
	tell := func(what string, reason planner.Reason) {
		event, warning := EventCapped, false
		switch reason.Code {
		case planner.Impossible:
			event, warning = EventImpossible, true
		case planner.CoolingDown:
			// The sentence counts seconds down and would be news every minute; GroupFailing tells of the group.
			reason.Message = "a group that could serve it failed lately and takes no launches for a while"
		}
		if told++; told > mostUnmetTold {
			further[event]++
			return
		}
		c.raise(ctx, r, v, warning, event, what+": "+reason.Message)
	}
	for _, u := range plan.InfeasibleRequests {
		tell(planner.Describe(raydemand.Request{Bundle: u.Bundle, Slice: u.Slice}), u.Reason)
	}
	for _, u := range plan.InfeasibleGangRequests {
		tell("gang "+u.ID, u.Reason)
	}
	for _, u := range plan.InfeasibleRequestResources {
		what := "request_resources " + planner.Describe(raydemand.Request{Bundle: u.Bundle, Slice: u.Slice})
		if u.AskedBy != "" {
			what += " (" + u.AskedBy + ")"
		}
		tell(what, u.Reason)
	}
	for _, event := range slices.Sorted(maps.Keys(further)) {
		c.raise(ctx, r, v, event == EventImpossible, event, fmt.Sprintf("further demands: %d more; `autoscaler explain` says why of each", further[event]))
	}
}

// raise emits a lasting state's Event when it is news. The key is the reason with the message's subject, so that two
// groups do not hide each other.
func (c *Controller) raise(ctx context.Context, r *record, v view, warning bool, reason, message string) {
	subject, _, _ := strings.Cut(message, ":")
	if !r.conditions.raise(v.now, reason+"/"+subject, message) {
		return
	}
	c.emit(ctx, v, warning, reason, message)
}

func (c *Controller) emit(ctx context.Context, v view, warning bool, reason, message string) {
	level := slog.LevelInfo
	if warning {
		level = slog.LevelWarn
	}
	c.config.Log.Log(ctx, level, "state", "cluster", v.cluster.Key.String(), "reason", reason, "message", message)
	c.kube.Event(v.cluster, warning, reason, message)
}

// tellPatched records a patch: one action, one log line and one Event per group.
func (c *Controller) tellPatched(ctx context.Context, o *outcome, targets []nodepool.Target, at time.Time, took time.Duration) {
	for _, t := range targets {
		pods, leaving := o.intent.leavingText(t.Group)
		event, message := EventScaledUp, fmt.Sprintf("group %s: replicas %d → %d: %s", t.Group, t.From, t.Replicas, o.intent.reasonOf(t.Group))
		switch {
		case len(pods) > 0 && t.Replicas >= t.From:
			event, message = EventReplaced, fmt.Sprintf("group %s: replicas %d → %d: without %s", t.Group, t.From, t.Replicas, leaving)
		case len(pods) > 0:
			event, message = EventScaledDown, fmt.Sprintf("group %s: replicas %d → %d: without %s", t.Group, t.From, t.Replicas, leaving)
		case t.Replicas < t.From:
			event = EventScaledDown
		case t.Replicas == t.From:
			event, message = "", fmt.Sprintf("group %s: the named workers are gone", t.Group) // for the log, not worth an Event
		}
		o.actions = append(o.actions, decision.Action{At: at, Kind: decision.ActionPatch, Result: decision.ResultOK, Group: t.Group,
			From: t.From, To: t.Replicas, Pods: pods, Message: message, Took: took})
		c.config.Log.InfoContext(ctx, "patched", "cluster", o.view.cluster.Key.String(), "group", t.Group,
			"from", t.From, "to", t.Replicas, "pods", pods, "reason", message)
		if event != "" {
			c.kube.Event(o.view.cluster, false, event, message)
		}
	}
}

func (c *Controller) tellDrain(ctx context.Context, o *outcome, w wish, action decision.Action) {
	event, warning := EventDraining, false
	switch action.Result {
	case decision.ResultRefused:
		event = EventDrainRefused
	case decision.ResultError:
		event, warning = EventDrainFailed, true
	}
	kind := "idle"
	if w.reason == raydemand.DrainPreemption {
		kind = "until " + w.deadline.UTC().Format(time.TimeOnly)
	}
	message := fmt.Sprintf("group %s: %s (%s): %s", w.group, w.pod, kind, action.Message)
	c.config.Log.InfoContext(ctx, "drain", "cluster", o.view.cluster.Key.String(), "group", w.group, "pod", w.pod,
		"result", action.Result, "reason", action.Message)
	c.kube.Event(o.view.cluster, warning, event, message)
}
