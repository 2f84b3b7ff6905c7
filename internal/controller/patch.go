package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// patch writes all targets of the cycle at once, or nothing.
func (c *Controller) patch(ctx context.Context, r *record, o *addon.Cycle) {
	if r.memory.Patches.rest.Resting(o.View.Now) {
		return
	}
	known := len(o.Findings)
	change, due := c.change(ctx, r, o)
	if !due {
		return
	}
	started := c.config.Now()
	r.memory.Patches.named.Note(o.Intent.Removals) // before the call, because a patch without an answer may be stored
	generation, err := c.kube.Apply(ctx, change)
	if errors.Is(err, nodepool.ErrOutdated) { // the owners are known now, so that a new reading of Ray is not too old
		c.rereadRay(ctx, r, o)
		o.Findings = o.Findings[:known]
		if change, due = c.change(ctx, r, o); !due {
			return
		}
		change.OwnersReadSince = started
		generation, err = c.kube.Apply(ctx, change)
	}
	targets, took := change.Targets, c.config.Now().Sub(started)
	if err != nil {
		c.patchFailed(ctx, r, o, err, addon.Action{At: started, Kind: addon.ActionPatch, Took: took})
		return
	}
	if wanted := r.memory.Patches.Wrote(generation, targets); !wanted.IsZero() {
		o.SeenToPatched = c.config.Now().Sub(wanted)
	}
	c.recordPatch(ctx, o, targets, started, took)
}

// change returns what the cycle writes, if anything is due and the RayCluster is still managed. It leaves out removals
// for which the reading of Ray is too old by now.
func (c *Controller) change(ctx context.Context, r *record, o *addon.Cycle) (change nodepool.Change, due bool) {
	change = nodepool.Change{Cluster: o.View.Cluster.Key, UID: o.View.Cluster.UID,
		Generation: o.View.Cluster.Generation}
	if len(o.Intent.Removals) > 0 {
		o.Intent.Set = o.Intent.RecentEnough(o.View.Members, c.config.Now().Sub(o.RereadAt), c.config.MaxDataAge)
	}
	if valid := o.Intent.Validity(c.config.MaxDataAge); valid > 0 {
		change.ValidUntil = o.RereadAt.Add(valid)
	}
	var findings []raydemand.Finding
	change.Targets, findings, o.Err = r.memory.Targets(o.View, &o.Intent, &c.config)
	o.Findings = append(o.Findings, findings...)
	if o.Err != nil {
		return change, false
	}
	r.memory.Patches.WantGrowth(o.View.Now, change.Targets)
	if len(change.Targets) == 0 {
		r.memory.Patches.conflicts, r.memory.Patches.unwritten = 0, nil
		return change, false
	}
	due = c.stillManaged(ctx, o.View.Cluster)
	if !due {
		o.Withheld, o.Again = true, true
	}
	return change, due
}

// patchFailed notes a patch that was not written. attempt is the action without its result.
func (c *Controller) patchFailed(ctx context.Context, r *record, o *addon.Cycle, err error, attempt addon.Action) {
	if ctx.Err() != nil { // the process ends, so the next one sees whether the patch was written
		o.Withheld = true
		return
	}
	attempt.Result, attempt.Message = addon.ResultError, err.Error()
	if errors.Is(err, nodepool.ErrConflict) || errors.Is(err, nodepool.ErrReadOnly) ||
		errors.Is(err, nodepool.ErrNotLeading) || errors.Is(err, nodepool.ErrOutdated) {
		if o.Again = errors.Is(err, nodepool.ErrConflict); o.Again {
			r.memory.Patches.conflicts++
		}
		o.Withheld = true
		attempt.Result = addon.ResultConflict
		o.Actions = append(o.Actions, attempt)
		return
	}
	if first := r.memory.Patches.Failed(o.View.Now, err); first {
		c.kube.Event(o.View.Cluster, true, addon.ReasonPatchFailed, err.Error())
	}
	o.Err = fmt.Errorf("patching %s: %w", o.View.Cluster.Key, err)
	o.Actions = append(o.Actions, attempt)
}

// recordPatch records a patch: one action, one log line and one Event per group.
func (c *Controller) recordPatch(
	ctx context.Context, o *addon.Cycle, targets []nodepool.Target, at time.Time, took time.Duration,
) {
	for _, t := range targets {
		pods, leaving := o.Intent.LeavingText(t.Group)
		e := patchEvent(t, o.Intent.ReasonOf(t.Group), pods, leaving)
		o.Actions = append(o.Actions,
			addon.Action{At: at, Kind: addon.ActionPatch, Result: addon.ResultOK, Group: t.Group,
				From: t.From, To: t.Replicas, Pods: pods, Message: e.Message, Took: took})
		c.config.Log.InfoContext(ctx, "patched", "cluster", o.View.Cluster.Key.String(), "group", t.Group,
			"from", t.From, "to", t.Replicas, "pods", pods, "reason", e.Message)
		if e.Reason != "" {
			c.kube.Event(o.View.Cluster, e.Warning, e.Reason, e.Message)
		}
	}
}

// patches are the patches of this process: when the next one is due, and what became of the last ones.
type patches struct {
	rest addon.Pause
	// generation is that of the last patch; zero if there was none.
	generation int64
	// conflicts counts the conflicts in a row, which slow the loop down a little.
	conflicts int
	// unwritten is why the last patch failed; nil after one succeeds or when there is nothing to write.
	unwritten error
	// named are the pods that were named while no living node was in them.
	named scaledown.NamedPods
	// reverts are those of other writers.
	reverts observe.Reverts
	// growthSince is since when growth is wanted that is not patched yet.
	growthSince time.Time
}

// longestWebhookPause bounds the pause after a webhook that does not answer, which has nothing to do with the
// RayCluster, and soon answers again after a restart.
const longestWebhookPause = time.Second

// WantGrowth remembers since when a larger goal is wanted.
func (p *patches) WantGrowth(now time.Time, targets []nodepool.Target) {
	grows := slices.ContainsFunc(targets, func(t nodepool.Target) bool { return t.Replicas > t.From })
	switch {
	case !grows:
		p.growthSince = time.Time{}
	case p.growthSince.IsZero():
		p.growthSince = now
	}
}

// Wrote notes a patch that was written, and returns since when its growth was wanted; zero if it raises nothing.
func (p *patches) Wrote(generation int64, targets []nodepool.Target) (wanted time.Time) {
	p.rest, p.conflicts, p.unwritten, p.generation = addon.Pause{}, 0, nil, generation
	p.reverts.Wrote(generation, targets)
	wanted, p.growthSince = p.growthSince, time.Time{}
	return wanted
}

// Failed notes why a patch was not written, and reports whether it is the first failure in a row.
func (p *patches) Failed(now time.Time, err error) (first bool) {
	longest := addon.LongestPause
	if errors.Is(err, nodepool.ErrWebhook) {
		longest = longestWebhookPause
	}
	p.rest.FailWithin(now, longest)
	p.unwritten = err
	return p.rest.Failures() == 1
}

// OperatorBehind returns why the operator has not yet carried out what the RayCluster says, or "".
func (p *patches) OperatorBehind(v observe.View) string {
	return scaledown.OperatorBehind(v, p.generation)
}
