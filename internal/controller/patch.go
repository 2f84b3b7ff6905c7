package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/event"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// patch writes all targets of the cycle at once, or nothing. If the pods of a reduction are not named in time, it
// writes the growth alone, which may take longer.
func (c *Controller) patch(ctx context.Context, r *record, o *outcome) {
	o.growthWanted = r.memory.Patches.GrowthSince()
	if r.memory.Patches.Rest(o.view.Now) {
		return
	}
	if len(o.intent.Removals) > 0 {
		o.intent.Set = o.intent.RecentEnough(o.view.Members, c.config.Now().Sub(o.rereadAt), c.config.MaxDataAge)
	}
	if c.patchOnce(ctx, r, o) {
		return
	}
	r.memory.Patches.Late(c.config.Now(), o.intent.Removals)
	o.paused = c.paused(r, o.view)
	o.intent = o.intent.WithoutReductions()
	c.patchOnce(ctx, r, o)
}

// patchOnce writes the intent. It returns false if it gave up because the pods of a reduction were not named in time;
// the API server may have stored the patch nevertheless, and then another patch of this cycle is a conflict.
func (c *Controller) patchOnce(ctx context.Context, r *record, o *outcome) (inTime bool) {
	targets, findings, err := r.memory.Targets(o.view, &o.intent, c.config.memory())
	o.findings = append(o.findings, findings...)
	if err != nil {
		o.err = err
		return true
	}
	o.growthWanted = r.memory.Patches.WantGrowth(o.view.Now, targets)
	if len(targets) == 0 {
		r.memory.Patches.NoneDue()
		return true
	}
	if !c.stillManaged(ctx, o.view.Cluster) {
		o.withheld, o.again = true, true
		return true
	}
	writing, hurry := ctx, o.intent.Hurry()
	if hurry > 0 {
		var done context.CancelFunc
		writing, done = context.WithTimeout(ctx, hurry)
		defer done()
	}
	started := c.config.Now()
	generation, err := c.kube.Apply(writing, nodepool.Change{Cluster: o.view.Cluster.Key, UID: o.view.Cluster.UID,
		Generation: o.view.Cluster.Generation, Targets: targets, StartTimes: r.memory.StartTimes()})
	took := c.config.Now().Sub(started)
	attempt := decision.Action{At: started, Kind: decision.ActionPatch, Took: took}
	switch {
	case err != nil && ctx.Err() == nil && writing.Err() != nil:
		attempt.Result = decision.ResultError
		attempt.Message = fmt.Sprintf("given up, because the API server did not store it within %v: %v", hurry, err)
		o.actions = append(o.actions, attempt)
		return false
	case err != nil:
		c.patchFailed(ctx, r, o, err, attempt)
		return true
	}
	if wanted := r.memory.Patches.Wrote(generation, targets, o.intent.Removals); !wanted.IsZero() {
		o.seenToPatched = c.config.Now().Sub(wanted)
	}
	c.recordPatch(ctx, o, targets, started, took)
	return true
}

// patchFailed notes a patch that was not written. attempt is the action without its result.
func (c *Controller) patchFailed(ctx context.Context, r *record, o *outcome, err error, attempt decision.Action) {
	if ctx.Err() != nil { // the process ends, so the next one sees whether the patch was written
		o.withheld = true
		return
	}
	attempt.Result, attempt.Message = decision.ResultError, err.Error()
	if errors.Is(err, nodepool.ErrConflict) || errors.Is(err, nodepool.ErrReadOnly) ||
		errors.Is(err, nodepool.ErrNotLeading) {
		if o.again = errors.Is(err, nodepool.ErrConflict); o.again {
			r.memory.Patches.Conflicted()
		}
		o.withheld = true
		attempt.Result = decision.ResultConflict
		o.actions = append(o.actions, attempt)
		return
	}
	if first := r.memory.Patches.Failed(o.view.Now, err); first {
		c.kube.Event(o.view.Cluster, true, event.PatchFailed, err.Error())
	}
	o.err = fmt.Errorf("patching %s: %w", o.view.Cluster.Key, err)
	o.actions = append(o.actions, attempt)
}

// recordPatch records a patch: one action, one log line and one Event per group.
func (c *Controller) recordPatch(
	ctx context.Context, o *outcome, targets []nodepool.Target, at time.Time, took time.Duration,
) {
	for _, t := range targets {
		pods, leaving := o.intent.LeavingText(t.Group)
		e := event.Patched(t, o.intent.ReasonOf(t.Group), pods, leaving)
		o.actions = append(o.actions,
			decision.Action{At: at, Kind: decision.ActionPatch, Result: decision.ResultOK, Group: t.Group,
				From: t.From, To: t.Replicas, Pods: pods, Message: e.Message, Took: took})
		c.config.Log.InfoContext(ctx, "patched", "cluster", o.view.Cluster.Key.String(), "group", t.Group,
			"from", t.From, "to", t.Replicas, "pods", pods, "reason", e.Message)
		if e.Reason != "" {
			c.kube.Event(o.view.Cluster, e.Warning, e.Reason, e.Message)
		}
	}
}
