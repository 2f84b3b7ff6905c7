package consolidation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Settings are those of consolidation.
type Settings struct {
	// After is how long a worker must be used a little before it is drained because others have room for its work.
	After time.Duration
	// Prices say what that saves, for groups without a price of their own.
	Prices *price.Book
}

// New returns the addon that drains workers whose work fits on others.
func New(settings Settings) addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		c := &consolidator{loop: loop, settings: settings}
		return addon.Feature{Observe: c.lookAtDraining, AfterDrains: c.consolidate}
	}}
}

// consolidator consolidates one RayCluster.
type consolidator struct {
	loop     addon.Loop
	settings Settings
	// tracker remembers which workers could leave; writes is the pause after a drain for it failed.
	tracker Tracker
	writes  addon.Pause
	// looked is when the actors on overdue drains were last read, and optedIn since when the RayCluster lets them end
	// without interruption; zero if it does not.
	looked, optedIn time.Time
}

// consolidate suggests which worker could leave because the others in use have room for its work, and drains it if the
// RayCluster opts in. It ends nothing: Ray moves the work, and the pod is named when its Ray node has ended.
func (c *consolidator) consolidate(ctx context.Context, o *addon.Cycle) {
	v, i, t, after := &o.View, &o.Intent, &c.tracker, c.settings.After
	defer func() {
		if v.Cluster.Consolidate.Valid() && len(t.moves) > 0 {
			o.LookWithin(LookEvery(after))
		}
	}()
	if o.Err != nil || o.Withheld {
		return
	}
	if !v.Live() || v.Mode == nodepool.Off || v.Cluster.Suspended {
		return
	}
	unquiet := c.unquiet(o)
	t.moves = slices.DeleteFunc(t.moves, func(m Move) bool { return !runs(v, m) }) // one that has gone is no suggestion
	t.Observe(v.Now, v.State.Session, unquiet, Launches(&i.Snapshot, &i.Plan))
	if t.WantsLook(v.Now, v.Cluster.Consolidate, unquiet, after) {
		moves, err := c.moves(ctx, v, i)
		if ctx.Err() != nil {
			return
		}
		t.Looked(v.Now, moves, err)
	}
	move, why := t.Next(v.Now, v.Cluster.Consolidate, unquiet, after)
	if move != nil && v.Mode != nodepool.Managed {
		move, why = nil, v.Why.Message
	}
	o.Findings = append(o.Findings, Findings(t.moves, v.Cluster.Key, v.Cluster.Consolidate,
		c.settings.Prices.Unit(), why)...)
	if move == nil || c.writes.Resting(v.Now) {
		return
	}
	if err := c.move(ctx, o, *move); err != nil && ctx.Err() == nil {
		c.writes.Fail(v.Now)
		c.loop.Log().InfoContext(ctx, "not consolidated", "cluster", v.Cluster.Key.String(), "pod", move.Pod,
			"why", err)
	}
}

// runs reports whether the Ray node of a move still runs in its pod.
func runs(v *observe.View, move Move) bool {
	return slices.ContainsFunc(v.Members, func(m observe.Member) bool {
		return m.Pod == move.Pod && m.Joined() && m.Node.ID == move.Node.ID && m.Node.Status != raydemand.Draining
	})
}

// unquiet returns why no worker may be drained now whatever runs on it, or "".
func (c *consolidator) unquiet(o *addon.Cycle) string {
	under := ""
	if c.loop.Drains().Open() > 0 {
		under = "a worker is being drained"
	}
	return cmp.Or(o.Paused, c.loop.OperatorBehind(o.View), under,
		Unquiet(&o.View, &o.Intent.Snapshot, &o.Intent.Plan))
}

// moves reads the actors, if any worker is used a little, and returns the workers whose work could move.
func (c *consolidator) moves(
	ctx context.Context, v *observe.View, i *addon.Intent,
) ([]Move, error) {
	if len(Candidates(v, &i.Snapshot)) == 0 {
		return nil, nil
	}
	if c.loop.Heavy(&i.Snapshot) {
		return nil, errors.New("there are too many different requests to plan without a worker")
	}
	residents, err := addon.Call(ctx, c.loop, addon.Ray.Residents)
	if err != nil {
		return nil, err
	}
	return Moves(Input{View: v, Snapshot: &i.Snapshot, Plan: &i.Plan, Residents: residents,
		Prices: c.settings.Prices}), nil
}

// move reads everything again and drains exactly the worker that it has read.
func (c *consolidator) move(ctx context.Context, o *addon.Cycle, move Move) error {
	fresh, err := c.loop.Fresh(ctx, o.View.Cluster.Key)
	if err != nil {
		return fmt.Errorf("reading the RayCluster again: %w", err)
	}
	if fresh.UID != o.View.Cluster.UID || fresh.Generation != o.View.Cluster.Generation ||
		!c.loop.Manages(o.View.Cluster, fresh) || !fresh.Consolidate.Allows(move.Needs) {
		return fmt.Errorf("the RayCluster has changed: %w", nodepool.ErrConflict)
	}
	again := *o
	again.View.Cluster = fresh
	again.View.Cluster.Promise(o.View.Cluster.Promised)
	readAt := c.loop.Now()
	if err := c.lookAgain(ctx, &again, readAt); err != nil {
		return err
	}
	moves, err := c.moves(ctx, &again.View, &again.Intent)
	if err != nil {
		return fmt.Errorf("reading the actors again: %w", err)
	}
	at := slices.IndexFunc(moves, func(m Move) bool { return m.Pod == move.Pod && m.Node.ID == move.Node.ID })
	if at < 0 || !fresh.Consolidate.Allows(moves[at].Needs) || !moves[at].Pays() {
		return errors.New("its work cannot move any more")
	}
	found := &moves[at]
	if !c.loop.MayWrite(fresh.Key) || c.loop.Now().Sub(readAt) > scaledown.ReadingValidity ||
		!c.loop.MayTakeAway(ctx, fresh) {
		return errors.New("the reading has grown old, or this process may not write")
	}
	now := c.loop.Now()
	w := scaledown.DrainRequest{Node: found.Node, Pod: found.Pod, Group: found.Group, Going: true,
		Reason: raydemand.DrainPreemption, Deadline: now.Add(Deadline(c.settings.After)),
		Message: "Heliostat: " + found.Text(c.settings.Prices.Unit())}
	c.tracker.Drained(now) // before the call, whose answer may be lost
	action := c.loop.Drain(ctx, o, w)
	o.Actions[len(o.Actions)-1].Reason = Reason
	if action.Result != addon.ResultOK {
		return errors.New(action.Message)
	}
	return nil
}

// lookAgain reads Ray again and decides with it. The cycle has the fresh view and intent afterwards.
func (c *consolidator) lookAgain(ctx context.Context, o *addon.Cycle, readAt time.Time) error {
	v := &o.View
	session := v.State.Session
	state, err := c.loop.ReadRay(ctx, v.Cluster, readAt)
	if err != nil {
		return fmt.Errorf("reading Ray again: %w", err)
	}
	v.State, v.Demand, v.ReadAt = state, state.Demand, readAt
	v.Head, v.Members = observe.LivingHead(state.Nodes), observe.Join(v.Cluster, state.Nodes)
	if state.Session != session || v.Head == nil {
		return errors.New("the GCS was restarted or lists no head")
	}
	o.Intent = c.loop.Plan(*v)
	o.Paused = c.loop.Paused(*v)
	if unquiet := c.unquiet(o); unquiet != "" {
		return errors.New(unquiet)
	}
	return nil
}

// lookAtDraining reads the actors if the deadline of a drain is over and the RayCluster lets restartable actors move.
func (c *consolidator) lookAtDraining(ctx context.Context, v *observe.View) {
	due := c.overdue(v, c.loop.Drains(), Deadline(c.settings.After))
	if len(due) == 0 || c.loop.Ray() == nil {
		return
	}
	c.looked = v.Now
	addon.LookAtOverdue(ctx, c.loop, v, due)
}
