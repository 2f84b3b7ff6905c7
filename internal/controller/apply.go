package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/event"
	"heliostat.dev/heliostat/internal/controller/memory"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/warmnodes"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// outcome is the result of one cycle: what was last observed, what was then intended, and what was done.
type outcome struct {
	view   observation.View
	intent memory.Intent
	// rereadAt is when the second reading of Ray began, before anything is taken away.
	rereadAt time.Time
	paused   string
	findings []raydemand.Finding
	actions  []decision.Action
	err      error
	// idle is what happens to the RayCluster without work.
	idle string
	// nodes is what becomes of nodes without workers; spent is what all warm capacity has cost on the budget's day.
	nodes warmnodes.Decision
	spent float64
	// withheld: the patch was not written, so nothing else is done. again: the next cycle follows at once.
	withheld, again bool
	seenToPatched   time.Duration
	growthWanted    time.Time
	numGPUs         map[string]decision.GroupNumGPUs
	optIn           *decision.OptIn
	jobs            *jobs.Held
}

// apply carries an intent out. A managed cluster gets the actions in steps. In shadow mode nothing is written, and the
// outcome says what a managed cluster would get.
func (c *Controller) apply(ctx context.Context, r *record, v observation.View, i memory.Intent) outcome {
	o := outcome{view: v, intent: i}
	r.conditions.Start()
	defer r.conditions.End()
	c.confirm(ctx, r, &o)
	c.emitConditions(ctx, r, o)
	if o.view.Mode != nodepool.Managed {
		r.memory.WantGrowth(o.view.Now, nil)
		r.configs.forget()
		c.syncNumGPUs(ctx, r, &o)
		o.optIn = c.optIn(&o)
		if e, begins := event.Waiting(o.view, o.optIn, &r.conditions); begins {
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

// patch writes all targets of the cycle at once, or nothing.
func (c *Controller) patch(ctx context.Context, r *record, o *outcome) {
	key := o.view.Cluster.Key
	o.growthWanted = r.memory.GrowthSince()
	if r.memory.PatchRests(o.view.Now) {
		return
	}
	if len(o.intent.Removals) > 0 {
		o.intent.Set = o.intent.RecentEnough(o.view.Members, c.config.Now().Sub(o.rereadAt), c.config.MaxDataAge)
	}
	targets, findings, err := r.memory.Targets(o.view, &o.intent, c.config.memory())
	o.findings = append(o.findings, findings...)
	if err != nil {
		o.err = err
		return
	}
	o.growthWanted = r.memory.WantGrowth(o.view.Now, targets)
	if len(targets) == 0 {
		r.memory.NothingToPatch()
		return
	}
	if !c.stillManaged(ctx, o.view.Cluster) {
		o.withheld, o.again = true, true
		return
	}
	started := c.config.Now()
	generation, err := c.kube.Apply(ctx, nodepool.Change{Cluster: key, UID: o.view.Cluster.UID,
		Generation: o.view.Cluster.Generation, Targets: targets, StartTimes: r.memory.StartTimes()})
	took := c.config.Now().Sub(started)
	if err != nil {
		c.patchFailed(ctx, r, o, err, decision.Action{At: started, Kind: decision.ActionPatch, Took: took})
		return
	}
	if wanted := r.memory.Patched(generation, targets, &o.intent); !wanted.IsZero() {
		o.seenToPatched = c.config.Now().Sub(wanted)
	}
	c.recordPatch(ctx, o, targets, started, took)
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
			r.memory.Conflicted()
		}
		o.withheld = true
		attempt.Result = decision.ResultConflict
		o.actions = append(o.actions, attempt)
		return
	}
	if first := r.memory.PatchFailed(o.view.Now, err); first {
		c.kube.Event(o.view.Cluster, true, event.PatchFailed, err.Error())
	}
	o.err = fmt.Errorf("patching %s: %w", o.view.Cluster.Key, err)
	o.actions = append(o.actions, attempt)
}

// stillManaged reports whether the caches still show the RayCluster as managed. It is called right before each write:
// a patch tests the annotations of the RayCluster itself, but cannot test those of the namespace.
func (c *Controller) stillManaged(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now)
}

// mayStillTakeAway reports whether the RayCluster is still managed, and its ResourceRequests and its policy are still
// known.
func (c *Controller) mayStillTakeAway(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now) && now.OwnedUnknown+now.PolicyUnknown == ""
}

func (c *Controller) manages(before, now nodepool.Cluster) bool {
	if now.UID != before.UID || now.Writable() != nil {
		return false
	}
	mode, _ := c.config.modes().Effective(now)
	return mode == nodepool.Managed
}

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
