package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxDrains bounds the drains of one cycle, so that growth never waits long behind them. The hosts of one replica are
// asked together, even beyond the bound.
const maxDrains = 16

// outcome is the result of one cycle: what was last observed, what was then intended, and what was done.
type outcome struct {
	view   observation.View
	intent intent
	// rereadAt is when the second reading of Ray began, before anything is taken away.
	rereadAt time.Time
	paused   string
	findings []raydemand.Finding
	actions  []decision.Action
	err      error
	// withheld: the patch was not written, so nothing else is done. again: the next cycle follows at once.
	withheld, again bool
	seenToPatched   time.Duration
	growthWanted    time.Time
	numGPUs         map[string]decision.GroupNumGPUs
	optIn           *decision.OptIn
}

// apply carries an intent out. A managed cluster gets the actions in steps. In shadow mode nothing is written, and the
// outcome says what a managed cluster would get.
func (c *Controller) apply(ctx context.Context, r *record, v observation.View, i intent) outcome {
	o := outcome{view: v, intent: i}
	r.conditions.begin()
	defer r.conditions.end()
	c.confirm(ctx, r, &o)
	c.emitConditions(ctx, r, o)
	if o.view.Mode != nodepool.Managed {
		r.growthSince = time.Time{}
		r.configs.forget()
		c.syncNumGPUs(ctx, r, &o)
		o.optIn = c.optIn(&o)
		c.emitWaiting(ctx, r, o.view, o.optIn)
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
	// One call for each node, so it must not delay the patch. If the patch failed, the pod of a drained node could not
	// be named either, so nothing is drained.
	{run: (*Controller).drain, allowed: func(o *outcome) bool { return o.err == nil && !o.withheld }},
	// Reports scale nothing, so they wait for everything that does. The cluster config is least urgent.
	{run: (*Controller).report, allowed: always},
	{run: (*Controller).reportClusterConfig, allowed: always},
}

func always(*outcome) bool { return true }

// confirm reads the RayCluster from the API server before anything is taken away, and decides again with it. Whatever
// the fresh object forbids, such as freeze, holds for the whole cycle.
func (c *Controller) confirm(ctx context.Context, r *record, o *outcome) {
	looking := r.guard.WantsFreshList(o.view.Now) && !r.patches.resting(o.view.Now) && !r.freshReads.resting(o.view.Now)
	o.paused = r.mayReduce(o.view, c.config)
	if behind := reduction.OperatorBehind(o.view, r.generation); behind != "" && len(o.intent.Drains) > 0 {
		o.paused, o.intent.Drains = behind, nil
	}
	if o.view.Mode != nodepool.Managed || (!o.intent.Any() && !looking) {
		return
	}
	if r.mayReduce(o.view, c.config) != "" && !looking {
		o.intent = o.intent.withoutReductions()
		return
	}
	fresh, err := c.kube.Fresh(ctx, o.view.Cluster.Key)
	if err != nil {
		r.freshReads.fail(o.view.Now)
		r.freshErr = err
		o.paused = r.mayReduce(o.view, c.config)
		o.intent = o.intent.withoutReductions()
		return
	}
	r.freshReads = backoff{}
	c.redecide(ctx, r, o, fresh, looking)
	c.rereadRay(ctx, r, o)
}

func (c *Controller) redecide(ctx context.Context, r *record, o *outcome, fresh nodepool.Cluster, looking bool) {
	first := o.intent
	if fresh.UID != o.view.Cluster.UID {
		o.paused, o.intent = "the RayCluster was deleted and created again", first.withoutReductions()
		o.intent.launch, o.withheld, o.again = nil, true, true
		return
	}
	fresh.Promise(o.view.Cluster.Promised)
	o.view.Cluster = fresh
	o.view.Members = membership.Join(fresh, o.view.State.Nodes)
	o.view.Mode, o.view.Why = c.config.modes().Effective(fresh)
	r.drains.KeepDeadlines(o.view, c.config.DrainDeadline)
	r.guard.Observe(o.view.Now, fresh, o.view.Members, o.view.State.Nodes, r.drains.Leaving)
	if looking && r.guard.WantsFreshList(o.view.Now) {
		r.guard.NoteFreshList(o.view.Now)
	}
	second, err := r.decide(ctx, o.view, c.config)
	if err != nil { // the process ends
		o.intent, o.withheld = first.withoutReductions(), true
		o.intent.launch = nil
		return
	}
	o.paused = r.mayReduce(o.view, c.config)
	if o.paused != "" {
		o.intent = second.withoutReductions()
		return
	}
	o.intent = first.confirmedBy(second)
}

// patch writes all targets of the cycle at once, or nothing.
func (c *Controller) patch(ctx context.Context, r *record, o *outcome) {
	key := o.view.Cluster.Key
	o.growthWanted = r.growthSince
	if r.patches.resting(o.view.Now) {
		return
	}
	if len(o.intent.Removals) > 0 {
		o.intent.Set = o.intent.RecentEnough(o.view.Members, c.config.Now().Sub(o.rereadAt), c.config.MaxDataAge)
	}
	targets, findings, err := nodepool.Targets(r.named.WithReturned(o.view, r.drains, c.config.AllocationTimeout),
		o.intent.launch, reduction.PodsOf(o.intent.Removals))
	o.findings = append(o.findings, findings...)
	if err != nil {
		o.err = err
		return
	}
	r.growthWanted(o.view, targets)
	o.growthWanted = r.growthSince
	if len(targets) == 0 {
		r.patches.conflicts, r.unwritten = 0, nil
		return
	}
	if !c.stillManaged(ctx, o.view.Cluster) {
		o.withheld, o.again = true, true
		return
	}
	started := c.config.Now()
	generation, err := c.kube.Apply(ctx,
		nodepool.Change{Cluster: key, UID: o.view.Cluster.UID, Generation: o.view.Cluster.Generation, Targets: targets})
	took := c.config.Now().Sub(started)
	switch {
	case err != nil && ctx.Err() != nil: // the process ends, so the next one sees whether the patch was written
		o.withheld = true
		return
	case errors.Is(err, nodepool.ErrConflict),
		errors.Is(err, nodepool.ErrReadOnly),
		errors.Is(err, nodepool.ErrNotLeading):
		if o.again = errors.Is(err, nodepool.ErrConflict); o.again {
			r.patches.conflicts++
		}
		o.withheld = true
		o.actions = append(o.actions, decision.Action{
			At:      started,
			Kind:    decision.ActionPatch,
			Result:  decision.ResultConflict,
			Took:    took,
			Message: err.Error(),
		})
		return
	case err != nil:
		r.patches.fail(o.view.Now)
		r.unwritten = err
		if r.patches.failures == 1 {
			c.kube.Event(o.view.Cluster, true, EventPatchFailed, err.Error())
		}
		o.err = fmt.Errorf("patching %s: %w", key, err)
		o.actions = append(o.actions, decision.Action{
			At:      started,
			Kind:    decision.ActionPatch,
			Result:  decision.ResultError,
			Took:    took,
			Message: err.Error(),
		})
		return
	}
	r.patches, r.unwritten, r.generation = backoff{}, nil, generation
	r.named.Note(o.intent.Removals)
	if !r.growthSince.IsZero() {
		o.seenToPatched = c.config.Now().Sub(r.growthSince)
		r.growthSince = time.Time{}
	}
	c.recordPatch(ctx, o, targets, started, took)
}

// growthWanted remembers since when a larger goal is wanted.
func (r *record) growthWanted(v observation.View, targets []nodepool.Target) {
	grows := slices.ContainsFunc(targets, func(t nodepool.Target) bool { return t.Replicas > t.From })
	switch {
	case !grows:
		r.growthSince = time.Time{}
	case r.growthSince.IsZero():
		r.growthSince = v.Now
	}
}

// drain asks nodes to leave, one after the other; the next host of a multi-host replica only after the one before
// agreed. The first call that fails ends the round: its raylet may hang, and growth must not wait behind more such
// calls. An outdated reading or a freeze ends it too. The next cycle asks for the rest.
func (c *Controller) drain(ctx context.Context, r *record, o *outcome) {
	if len(o.intent.Drains) == 0 {
		return
	}
	if behind := reduction.OperatorBehind(o.view, r.generation); behind != "" {
		o.paused = behind
		return
	}
	refused := map[string]bool{}
	for _, w := range drainRound(o.intent.Drains) {
		if w.Replica != "" && refused[w.Replica] {
			continue
		}
		if !c.kube.Leading() || c.config.Now().Sub(o.rereadAt) > reduction.ReadingValidity ||
			!c.mayStillTakeAway(ctx, o.view.Cluster) {
			return
		}
		action := c.ask(ctx, r, w)
		o.actions = append(o.actions, action)
		c.recordDrain(ctx, o, w, action)
		switch action.Result {
		case decision.ResultRefused:
			refused[w.Replica] = true
		case decision.ResultError:
			return
		}
	}
}

// drainRound returns the drains of one cycle, with the hosts of a replica next to each other. It never splits a
// replica, because the rest of a replica with a drained host is of no use.
func drainRound(drains []reduction.DrainRequest) []reduction.DrainRequest {
	drains = slices.Clone(drains)
	slices.SortStableFunc(drains, func(a, b reduction.DrainRequest) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Replica, b.Replica))
	})
	for n := maxDrains; n < len(drains); n++ {
		if replica := drains[n].Replica; replica == "" || replica != drains[n-1].Replica {
			return drains[:n]
		}
	}
	return drains
}

// stillManaged reports whether the caches still show the RayCluster as managed. It is called right before each write:
// a patch tests the annotations of the RayCluster itself, but cannot test those of the namespace.
func (c *Controller) stillManaged(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now)
}

// mayStillTakeAway reports whether the RayCluster is still managed and its ResourceRequests are still known.
func (c *Controller) mayStillTakeAway(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now) && now.OwnedUnknown == ""
}

func (c *Controller) manages(before, now nodepool.Cluster) bool {
	if now.UID != before.UID || now.Writable() != nil {
		return false
	}
	mode, _ := c.config.modes().Effective(now)
	return mode == nodepool.Managed
}

// ask sends one drain. It notes the drain before the call, so that a drain whose answer is lost counts as accepted for
// a while.
func (c *Controller) ask(ctx context.Context, r *record, w reduction.DrainRequest) decision.Action {
	started := c.config.Now()
	entry := r.drains.Begin(w.Node.ID, w.Pod, started, w.Deadline)
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	action := decision.Action{At: started, Kind: decision.ActionDrain, Group: w.Group, Pods: []string{w.Pod}}
	reply, err := r.gcs.Ray.Drain(ctx,
		raydemand.Drain{Node: w.Node, Reason: w.Reason, Message: w.Message, Deadline: w.Deadline})
	action.Took = c.config.Now().Sub(started)
	switch {
	case err != nil:
		action.Result, action.Message = decision.ResultError, err.Error()
	case reply.Accepted:
		entry.Accept()
		action.Result, action.Message = decision.ResultOK, w.Message
	default:
		entry.Refuse(started)
		action.Result, action.Message = decision.ResultRefused, reply.Message
	}
	return action
}

// reasonOf returns the planner's first reason for a group.
func (i intent) reasonOf(group string) string {
	for _, g := range i.plan.Groups {
		if g.Name == group && len(g.Reasons) > 0 {
			return g.Reasons[0].Message
		}
	}
	return ""
}
