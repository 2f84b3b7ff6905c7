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
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxDrains bounds the drains of one cycle, so that growth never waits long behind them. A replica of more hosts is asked
// as a whole.
const maxDrains = 16

// outcome is a cycle as it went: what was seen last, what was wanted then, and what was done.
type outcome struct {
	view   view
	intent intent
	// lookedAt is when Ray was asked for the second time, before anything is taken away.
	lookedAt time.Time
	paused   string
	findings []raydemand.Finding
	actions  []decision.Action
	err      error
	// withheld: the patch was not written, so nothing else is done either; again: look again at once.
	withheld, again bool
	seenToPatched   time.Duration
	growthWanted    time.Time
	numGPUs         map[string]decision.GroupNumGPUs
	optIn           *decision.OptIn
}

// apply carries an intent out: first the one patch, then the drains, then the report to Ray. Only a managed cluster is
// written to; in shadow mode the plan is all there is.
func (c *Controller) apply(ctx context.Context, r *record, v view, wanted intent) outcome {
	o := outcome{view: v, intent: wanted}
	r.conditions.begin()
	defer r.conditions.end()
	c.confirm(ctx, r, &o)
	c.tellStates(ctx, r, o)
	if o.view.mode != nodepool.Managed {
		r.wantedAt = time.Time{}
		r.configs.forget()
		c.syncNumGPUs(ctx, r, &o)
		o.optIn = c.optIn(&o)
		c.tellWaiting(ctx, r, o.view, o.optIn)
		return o
	}
	if !o.withheld {
		c.patch(ctx, r, &o)
	}
	c.syncNumGPUs(ctx, r, &o)
	if o.err == nil && !o.withheld {
		c.drain(ctx, r, &o)
	}
	c.report(ctx, r, &o)
	c.reportClusterConfig(ctx, r, &o)
	r.note(o.actions)
	return o
}

// confirm takes a second look, from the API server itself, before anything is taken away, and decides again on what it
// shows. Whatever the fresh object forbids, freeze first of all, holds for the whole cycle.
func (c *Controller) confirm(ctx context.Context, r *record, o *outcome) {
	looking := r.guard.wantsLook(o.view.now) && !r.patches.resting(o.view.now) && !r.looks.resting(o.view.now)
	o.paused = r.mayReduce(o.view, c.config)
	if behind := r.operatorBehind(o.view); behind != "" && len(o.intent.wishes) > 0 {
		o.paused, o.intent.wishes = behind, nil
	}
	if o.view.mode != nodepool.Managed || (!o.intent.reduces() && !looking) {
		return
	}
	if r.mayReduce(o.view, c.config) != "" && !looking {
		o.intent = o.intent.withoutReductions()
		return
	}
	fresh, err := c.kube.Fresh(ctx, o.view.cluster.Key)
	if err != nil {
		r.looks.fail(o.view.now)
		r.lookErr = err
		o.paused = r.mayReduce(o.view, c.config)
		o.intent = o.intent.withoutReductions()
		return
	}
	r.looks = patchBackoff{}
	c.redecide(r, o, fresh, looking)
	c.lookAgain(ctx, r, o)
}

func (c *Controller) redecide(r *record, o *outcome, fresh nodepool.Cluster, looking bool) {
	first := o.intent
	if fresh.UID != o.view.cluster.UID {
		o.paused, o.intent = "the RayCluster was created anew", first.withoutReductions()
		o.intent.launch, o.withheld, o.again = nil, true, true
		return
	}
	o.view.cluster = fresh
	o.view.members = membership.Join(fresh, o.view.state.Nodes)
	o.view.mode, o.view.why = c.config.modes().Effective(fresh)
	r.drains.keepDeadlines(o.view, c.config.DrainDeadline)
	r.guard.observe(o.view.now, fresh, o.view.members, o.view.state.Nodes, r.drains.leaving)
	if looking && r.guard.wantsLook(o.view.now) {
		r.guard.looked(o.view.now)
	}
	second := r.decide(o.view, c.config)
	o.paused = r.mayReduce(o.view, c.config)
	if o.paused != "" {
		o.intent = second.withoutReductions()
		return
	}
	o.intent = first.confirmedBy(second)
}

// patch writes all targets of the cycle at once, or nothing.
func (c *Controller) patch(ctx context.Context, r *record, o *outcome) {
	key := o.view.cluster.Key
	o.growthWanted = r.wantedAt
	if r.patches.resting(o.view.now) {
		return
	}
	if len(o.intent.removals) > 0 {
		o.intent.reductions = o.intent.recentEnough(o.view.members, c.config.Now().Sub(o.lookedAt), c.config.MaxDataAge)
	}
	targets, findings, err := nodepool.Targets(r.named.withReturned(o.view, r.drains, c.config.AllocationTimeout), o.intent.launch, podsOf(o.intent.removals))
	o.findings = append(o.findings, findings...)
	if err != nil {
		o.err = err
		return
	}
	r.growthWanted(o.view, targets)
	o.growthWanted = r.wantedAt
	if len(targets) == 0 {
		r.patches.conflicts, r.unwritten = 0, nil
		return
	}
	if !c.stillManaged(ctx, o.view.cluster) {
		o.withheld, o.again = true, true
		return
	}
	started := c.config.Now()
	generation, err := c.kube.Apply(ctx, nodepool.Change{Cluster: key, UID: o.view.cluster.UID, Generation: o.view.cluster.Generation, Targets: targets})
	took := c.config.Now().Sub(started)
	switch {
	case err != nil && ctx.Err() != nil: // an end that was asked for: who goes on sees whether it was written
		o.withheld = true
		return
	case errors.Is(err, nodepool.ErrConflict), errors.Is(err, nodepool.ErrReadOnly), errors.Is(err, nodepool.ErrNotLeading):
		if o.again = errors.Is(err, nodepool.ErrConflict); o.again {
			r.patches.conflicts++
		}
		o.withheld = true
		o.actions = append(o.actions, decision.Action{At: started, Kind: decision.ActionPatch, Result: decision.ResultConflict, Took: took, Message: err.Error()})
		return
	case err != nil:
		r.patches.fail(o.view.now)
		r.unwritten = err
		if r.patches.failures == 1 {
			c.kube.Event(o.view.cluster, true, EventPatchFailed, err.Error())
		}
		o.err = fmt.Errorf("patching %s: %w", key, err)
		o.actions = append(o.actions, decision.Action{At: started, Kind: decision.ActionPatch, Result: decision.ResultError, Took: took, Message: err.Error()})
		return
	}
	r.patches, r.unwritten, r.generation = patchBackoff{}, nil, generation
	r.named.note(o.intent.removals)
	if !r.wantedAt.IsZero() {
		o.seenToPatched = c.config.Now().Sub(r.wantedAt)
		r.wantedAt = time.Time{}
	}
	c.tellPatched(ctx, o, targets, started, took)
}

// growthWanted keeps since when a larger goal has been wanted.
func (r *record) growthWanted(v view, targets []nodepool.Target) {
	grows := slices.ContainsFunc(targets, func(t nodepool.Target) bool { return t.Replicas > t.From })
	switch {
	case !grows:
		r.wantedAt = time.Time{}
	case r.wantedAt.IsZero():
		r.wantedAt = v.now
	}
}

// drain asks nodes to leave, one after the other; a multi-host replica's next host only after the one before agreed. The
// first call that fails ends the round: its raylet may hang, and growth must not wait behind more of that. So does a
// reading that has grown old, or a freeze, meanwhile: the rest follows with the next cycle.
func (c *Controller) drain(ctx context.Context, r *record, o *outcome) {
	if len(o.intent.wishes) == 0 {
		return
	}
	if behind := r.operatorBehind(o.view); behind != "" {
		o.paused = behind
		return
	}
	refused := map[string]bool{}
	for _, w := range drainRound(o.intent.wishes) {
		if w.replica != "" && refused[w.replica] {
			continue
		}
		if !c.kube.Leading() || c.config.Now().Sub(o.lookedAt) > raySight || !c.mayStillTakeAway(ctx, o.view.cluster) {
			return
		}
		action := c.ask(ctx, r, w)
		o.actions = append(o.actions, action)
		c.tellDrain(ctx, o, w, action)
		switch action.Result {
		case decision.ResultRefused:
			refused[w.replica] = true
		case decision.ResultError:
			return
		}
	}
}

// drainRound is what one cycle asks for: the hosts of a replica next to each other, and never a part of one, since a
// drained host whose replica stays serves nobody.
func drainRound(wishes []wish) []wish {
	wishes = slices.Clone(wishes)
	slices.SortStableFunc(wishes, func(a, b wish) int {
		return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.replica, b.replica))
	})
	for n := maxDrains; n < len(wishes); n++ {
		if replica := wishes[n].replica; replica == "" || replica != wishes[n-1].replica {
			return wishes[:n]
		}
	}
	return wishes
}

// stillManaged reports whether the caches still show the RayCluster as one that may be written to. It is asked right
// before each write: a patch tests the RayCluster's own annotations by itself, and cannot test those of the namespace.
func (c *Controller) stillManaged(ctx context.Context, before nodepool.Cluster) bool {
	now, err := c.kube.Cluster(ctx, before.Key)
	return err == nil && c.manages(before, now)
}

// mayStillTakeAway reports the same, and whether it is still known what owners ask for.
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

// ask asks one drain. The memory is written before the call, so that a lost answer counts as accepted for a while.
func (c *Controller) ask(ctx context.Context, r *record, w wish) decision.Action {
	started := c.config.Now()
	entry := r.drains.ask(w.node.ID, w.pod, started, w.deadline)
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	action := decision.Action{At: started, Kind: decision.ActionDrain, Group: w.group, Pods: []string{w.pod}}
	reply, err := r.line.ray.Drain(ctx, raydemand.Drain{Node: w.node, Reason: w.reason, Message: w.message, Deadline: w.deadline})
	action.Took = c.config.Now().Sub(started)
	switch {
	case err != nil:
		action.Result, action.Message = decision.ResultError, err.Error()
	case reply.Accepted:
		entry.accepted, entry.answered = true, true
		action.Result, action.Message = decision.ResultOK, w.message
	default:
		entry.refuse(started)
		action.Result, action.Message = decision.ResultRefused, reply.Message
	}
	return action
}

func podsOf(removals []removal) []string {
	pods := make([]string, len(removals))
	for i, r := range removals {
		pods[i] = r.pod
	}
	return pods
}

// reasonOf is the planner's first sentence about a group.
func (i intent) reasonOf(group string) string {
	for _, g := range i.plan.Groups {
		if g.Name == group && len(g.Reasons) > 0 {
			return g.Reasons[0].Message
		}
	}
	return ""
}

// leavingText says which pods of a group leave and why: "a, b (drained)".
func (s reductions) leavingText(group string) (pods []string, text string) {
	var why []string
	for _, r := range s.removals {
		if r.group == group {
			pods = append(pods, r.pod)
			if !slices.Contains(why, r.reason) {
				why = append(why, r.reason)
			}
		}
	}
	return pods, strings.Join(pods, ", ") + " (" + strings.Join(why, ", ") + ")"
}
