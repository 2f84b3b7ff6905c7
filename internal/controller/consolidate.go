package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon/consolidation"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// consolidate suggests which worker could leave because the others in use have room for its work, and drains it if the
// RayCluster opts in. It ends nothing: Ray moves the work, and the pod is named when its Ray node has ended.
func (c *Controller) consolidate(ctx context.Context, r *record, o *outcome) {
	v, i, t, after := &o.view, &o.intent, &r.consolidation, c.config.ConsolidateAfter
	if !v.Live() || v.Mode == nodepool.Off || v.Cluster.Suspended {
		return
	}
	unquiet := r.unquiet(o)
	t.Drop(func(m consolidation.Move) bool { return !runs(v, m) })
	t.Observe(v.Now, v.State.Session, unquiet, consolidation.Launches(&i.Snapshot, &i.Plan))
	if t.WantsLook(v.Now, v.Cluster.Consolidate, unquiet, after) {
		moves, err := c.moves(ctx, r, v, i)
		if ctx.Err() != nil {
			return
		}
		t.Looked(v.Now, moves, err)
	}
	move, why := t.Next(v.Now, v.Cluster.Consolidate, unquiet, after)
	if move != nil && v.Mode != nodepool.Managed {
		move, why = nil, v.Why.Message
	}
	o.findings = append(o.findings, consolidation.Findings(t.Moves(), v.Cluster.Key, v.Cluster.Consolidate,
		c.config.Prices.Unit(), why)...)
	if move == nil || r.moveWrites.Resting(v.Now) {
		return
	}
	if err := c.move(ctx, r, o, *move); err != nil && ctx.Err() == nil {
		r.moveWrites.Fail(v.Now)
		c.config.Log.InfoContext(ctx, "not consolidated", "cluster", v.Cluster.Key.String(), "pod", move.Pod,
			"why", err)
	}
}

// runs reports whether the Ray node of a move still runs in its pod.
func runs(v *observe.View, move consolidation.Move) bool {
	return slices.ContainsFunc(v.Members, func(m observe.Member) bool {
		return m.Pod == move.Pod && m.Joined() && m.Node.ID == move.Node.ID && m.Node.Status != raydemand.Draining
	})
}

// unquiet returns why no worker may be drained now whatever runs on it, or "".
func (r *record) unquiet(o *outcome) string {
	under := ""
	if r.memory.Drains().Open() > 0 {
		under = "a worker is being drained"
	}
	return cmp.Or(o.paused, r.memory.Patches.OperatorBehind(o.view), under,
		consolidation.Unquiet(&o.view, &o.intent.Snapshot, &o.intent.Plan))
}

// moves reads the actors, if any worker is used a little, and returns the workers whose work could move.
func (c *Controller) moves(
	ctx context.Context, r *record, v *observe.View, i *Intent,
) ([]consolidation.Move, error) {
	if len(consolidation.Candidates(v, &i.Snapshot)) == 0 {
		return nil, nil
	}
	if r.gcs.Ray == nil {
		return nil, errors.New("there is no connection to the head")
	}
	if heavyDemand(&i.Snapshot) {
		return nil, errors.New("there are too many different requests to plan without a worker")
	}
	reading, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	residents, err := r.gcs.Ray.Residents(reading)
	if err != nil {
		return nil, err
	}
	return consolidation.Moves(consolidation.Input{View: v, Snapshot: &i.Snapshot, Plan: &i.Plan, Residents: residents,
		Prices: c.config.Prices, StartTime: r.memory.StartTime,
		Compute: func(s planner.Snapshot) planner.Plan { return planner.Compute(s, s.Policy) }}), nil
}

// move reads everything again and drains exactly the worker that it has read.
func (c *Controller) move(ctx context.Context, r *record, o *outcome, move consolidation.Move) error {
	fresh, err := c.kube.Fresh(ctx, o.view.Cluster.Key)
	if err != nil {
		return fmt.Errorf("reading the RayCluster again: %w", err)
	}
	if fresh.UID != o.view.Cluster.UID || fresh.Generation != o.view.Cluster.Generation ||
		!c.manages(o.view.Cluster, fresh) || !fresh.Consolidate.Allows(move.Needs) {
		return fmt.Errorf("the RayCluster has changed: %w", nodepool.ErrConflict)
	}
	again := *o
	again.view.Cluster = fresh
	again.view.Cluster.Promise(o.view.Cluster.Promised)
	readAt := c.config.Now()
	if err := c.lookAgain(ctx, r, &again, readAt); err != nil {
		return err
	}
	moves, err := c.moves(ctx, r, &again.view, &again.intent)
	if err != nil {
		return fmt.Errorf("reading the actors again: %w", err)
	}
	found := consolidation.Find(moves, move)
	if found == nil || !fresh.Consolidate.Allows(found.Needs) || !found.Pays() {
		return errors.New("its work cannot move any more")
	}
	if !c.kube.MayWrite(fresh.Key) || c.config.Now().Sub(readAt) > scaledown.ReadingValidity ||
		!c.mayStillTakeAway(ctx, fresh) {
		return errors.New("the reading has grown old, or this process may not write")
	}
	now := c.config.Now()
	w := scaledown.DrainRequest{Node: found.Node, Pod: found.Pod, Group: found.Group, Going: true,
		Reason: raydemand.DrainPreemption, Deadline: now.Add(consolidation.Deadline(c.config.ConsolidateAfter)),
		Message: "Heliostat: " + found.Text(c.config.Prices.Unit())}
	r.consolidation.Drained(now) // before the call, whose answer may be lost
	action := c.ask(ctx, r, w)
	action.Reason = consolidation.Reason
	o.actions = append(o.actions, action)
	c.recordDrain(ctx, o, w, action)
	if action.Result != decision.ResultOK {
		return errors.New(action.Message)
	}
	return nil
}

// lookAgain reads Ray again and decides with it. The outcome has the fresh view and intent afterwards.
func (c *Controller) lookAgain(ctx context.Context, r *record, o *outcome, readAt time.Time) error {
	v := &o.view
	session := v.State.Session
	state, err := c.readRay(ctx, r, v.Cluster, readAt, 0)
	if err != nil {
		return fmt.Errorf("reading Ray again: %w", err)
	}
	v.State, v.Demand, v.ReadAt = state, state.Demand, readAt
	v.Head, v.Members = observe.LivingHead(state.Nodes), observe.Join(v.Cluster, state.Nodes)
	if state.Session != session || v.Head == nil {
		return errDifferentSession
	}
	if o.intent, err = c.plan(ctx, r, *v); err != nil {
		return err
	}
	o.paused = c.paused(r, *v)
	if unquiet := r.unquiet(o); unquiet != "" {
		return errors.New(unquiet)
	}
	return nil
}

// lookAtDraining reads the actors if the deadline of a drain is over and the RayCluster lets restartable actors move.
// Ray does not end them: it lets what runs on a draining node continue.
func (c *Controller) lookAtDraining(ctx context.Context, r *record, v *observe.View) {
	due := r.memory.OverdueDrains(v, consolidation.Deadline(c.config.ConsolidateAfter))
	if len(due) == 0 || r.gcs.Ray == nil {
		return
	}
	r.memory.LooksAtActors(v.Now)
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	residents, err := r.gcs.Ray.Residents(ctx)
	if err != nil {
		c.config.Log.WarnContext(ctx, "cannot read the actors", "cluster", v.Cluster.Key.String(), "err", err)
		return
	}
	r.memory.EndWith(consolidation.Restartable(due, residents))
}
