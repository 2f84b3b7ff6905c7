package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// patch writes all targets of the cycle at once, or nothing.
func (c *Controller) patch(ctx context.Context, r *record, o *outcome) {
	o.growthWanted = r.memory.Patches.GrowthSince()
	if r.memory.Patches.Rest(o.view.Now) {
		return
	}
	known := len(o.findings)
	change, due := c.change(r, o)
	if !due {
		return
	}
	if !c.stillManaged(ctx, o.view.Cluster) {
		o.withheld, o.again = true, true
		return
	}
	started := c.config.Now()
	generation, err := c.kube.Apply(ctx, change)
	if errors.Is(err, nodepool.ErrOutdated) { // the owners are known now, so that a new reading of Ray is not too old
		c.rereadRay(ctx, r, o)
		o.findings = o.findings[:known]
		if change, due = c.change(r, o); !due {
			return
		}
		if !c.stillManaged(ctx, o.view.Cluster) {
			o.withheld, o.again = true, true
			return
		}
		change.OwnersReadSince = started
		generation, err = c.kube.Apply(ctx, change)
	}
	targets, took := change.Targets, c.config.Now().Sub(started)
	if err != nil {
		c.patchFailed(ctx, r, o, err, decision.Action{At: started, Kind: decision.ActionPatch, Took: took})
		return
	}
	if wanted := r.memory.Patches.Wrote(generation, targets, o.intent.Removals); !wanted.IsZero() {
		o.seenToPatched = c.config.Now().Sub(wanted)
	}
	c.recordPatch(ctx, o, targets, started, took)
}

// change returns what the cycle writes, if anything is due. It leaves out removals for which the reading of Ray is too
// old by now.
func (c *Controller) change(r *record, o *outcome) (change nodepool.Change, due bool) {
	change = nodepool.Change{Cluster: o.view.Cluster.Key, UID: o.view.Cluster.UID,
		Generation: o.view.Cluster.Generation}
	if len(o.intent.Removals) > 0 {
		o.intent.Set = o.intent.RecentEnough(o.view.Members, c.config.Now().Sub(o.rereadAt), c.config.MaxDataAge)
	}
	if valid := o.intent.Validity(c.config.MaxDataAge); valid > 0 {
		change.ValidUntil = o.rereadAt.Add(valid)
	}
	var findings []raydemand.Finding
	change.Targets, findings, o.err = r.memory.Targets(o.view, &o.intent, c.config.memory())
	o.findings = append(o.findings, findings...)
	if o.err != nil {
		return change, false
	}
	o.growthWanted = r.memory.Patches.WantGrowth(o.view.Now, change.Targets)
	if len(change.Targets) == 0 {
		r.memory.Patches.NoneDue()
		return change, false
	}
	return change, true
}

// patchFailed notes a patch that was not written. attempt is the action without its result.
func (c *Controller) patchFailed(ctx context.Context, r *record, o *outcome, err error, attempt decision.Action) {
	if ctx.Err() != nil { // the process ends, so the next one sees whether the patch was written
		o.withheld = true
		return
	}
	attempt.Result, attempt.Message = decision.ResultError, err.Error()
	if errors.Is(err, nodepool.ErrConflict) || errors.Is(err, nodepool.ErrReadOnly) ||
		errors.Is(err, nodepool.ErrNotLeading) || errors.Is(err, nodepool.ErrOutdated) {
		if o.again = errors.Is(err, nodepool.ErrConflict); o.again {
			r.memory.Patches.Conflicted()
		}
		o.withheld = true
		attempt.Result = decision.ResultConflict
		o.actions = append(o.actions, attempt)
		return
	}
	if first := r.memory.Patches.Failed(o.view.Now, err); first {
		c.kube.Event(o.view.Cluster, true, decision.ReasonPatchFailed, err.Error())
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
		e := decision.PatchEvent(t, o.intent.ReasonOf(t.Group), pods, leaving)
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
