package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	warm "heliostat.dev/heliostat/internal/addon/capacity"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// endIdle suspends or deletes a RayCluster that has been without work for as long as its capacity policy says, and
// resumes one that Heliostat has suspended when a request or the policy wants capacity.
func (c *Controller) endIdle(ctx context.Context, r *record, o *outcome) {
	v, policy := &o.view, o.view.Cluster.Policy
	if v.Cluster.Suspended {
		c.endSuspended(ctx, r, o)
		return
	}
	if policy == nil || policy.Idle == nil || *policy.Idle == (capacity.Idle{}) {
		return
	}
	if c.config.Form == mode.Sidecar {
		o.idle = "not suspended or deleted: the sidecar would end with it, and nobody could resume it"
		return
	}
	if v.Mode != nodepool.Managed {
		o.idle = "not suspended or deleted: " + v.Why.Message
		return
	}
	doubt := c.doubt(r, *v)
	r.idleClock.Observe(v, doubt)
	step := r.idleClock.Next(v, policy.Idle, doubt)
	if step.Do == warm.Look {
		found, err := c.occupants(ctx, r)
		if ctx.Err() != nil {
			return
		}
		r.idleClock.Looked(c.config.Now(), found, err)
		step = r.idleClock.Next(v, policy.Idle, doubt)
	}
	c.carryOut(ctx, r, o, step)
}

// occupants reads what lives in the Ray cluster.
func (c *Controller) occupants(ctx context.Context, r *record) (raydemand.Occupants, error) {
	ray := r.gcs.Ray
	if ray == nil {
		return raydemand.Occupants{}, errors.New("there is no connection to the head")
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	return ray.Occupants(ctx)
}

// endSuspended resumes or deletes a RayCluster that Heliostat has suspended, if it would manage it otherwise.
func (c *Controller) endSuspended(ctx context.Context, r *record, o *outcome) {
	cluster := o.view.Cluster
	if cluster.IdleSince.IsZero() {
		r.idleClock = warm.IdleClock{}
		return
	}
	cluster.Suspended = false
	if now, why := c.config.modes().Effective(cluster); now != nodepool.Managed {
		r.idleClock = warm.IdleClock{} // what was announced is void
		o.idle = "suspended, and not resumed or deleted: " + why.Message
		return
	}
	var idle *capacity.Idle
	if cluster.Policy != nil {
		idle = cluster.Policy.Idle
	}
	c.carryOut(ctx, r, o, r.idleClock.Suspended(&o.view.Cluster, o.view.Now, idle))
}

// carryOut announces the end of a RayCluster without work, or ends it.
func (c *Controller) carryOut(ctx context.Context, r *record, o *outcome, step warm.IdleStep) {
	o.idle = step.Text
	switch step.Do {
	case warm.Announce:
		c.emit(ctx, o.view, decision.Event{Warning: true, Reason: decision.ReasonIdleAnnounced,
			Message: "It will be " + step.Text})
	case warm.End:
		if r.idleWrites.rest.Resting(o.view.Now) {
			o.idle = r.idleWrites.err.Error()
			return
		}
		c.writeIdle(ctx, r, o, step)
	}
}

// writeIdle reads the RayCluster from the API server and Ray once more, and ends or resumes exactly what it has read.
func (c *Controller) writeIdle(ctx context.Context, r *record, o *outcome, step warm.IdleStep) {
	started := c.config.Now()
	err := c.stillIdle(ctx, r, o, step)
	if err == nil {
		err = c.kube.EndIdle(ctx, nodepool.IdleChange{Cluster: o.view.Cluster.Key, UID: o.view.Cluster.UID,
			ResourceVersion: o.view.Cluster.ResourceVersion, Generation: o.view.Cluster.Generation,
			Action: step.Action, Since: step.Since})
	}
	if ctx.Err() != nil {
		return
	}
	action := decision.Action{At: started, Kind: decision.ActionIdle, Result: decision.ResultOK,
		Message: string(step.Action) + ": " + step.Text, Took: c.config.Now().Sub(started)}
	failed := "failed"
	switch {
	case err == nil:
		r.idleWrites, r.idleClock = failing{}, warm.IdleClock{}
		c.emit(ctx, o.view, decision.Event{Reason: idleReasons[step.Action], Message: step.Text})
	case errors.Is(err, nodepool.ErrConflict), errors.Is(err, nodepool.ErrReadOnly),
		errors.Is(err, nodepool.ErrNotLeading), errors.Is(err, nodepool.ErrGone):
		action.Result, failed = decision.ResultConflict, "failed and is decided again"
	default:
		action.Result = decision.ResultError
	}
	if err != nil {
		action.Message = err.Error()
		r.idleWrites.fail(o.view.Now, fmt.Errorf("%s %s: %w", step.Action, failed, err))
		o.idle = r.idleWrites.err.Error()
	}
	o.actions = append(o.actions, action)
}

var idleReasons = map[nodepool.IdleAction]string{
	nodepool.SuspendIdle: decision.ReasonIdleSuspended,
	nodepool.ResumeIdle:  decision.ReasonIdleResumed,
	nodepool.DeleteIdle:  decision.ReasonIdleDeleted,
}

// stillIdle returns why a RayCluster must not be suspended, resumed or deleted after all. The view has the fresh object
// afterwards.
func (c *Controller) stillIdle(ctx context.Context, r *record, o *outcome, step warm.IdleStep) error {
	before := &o.view.Cluster
	fresh, err := c.kube.Fresh(ctx, before.Key)
	if err != nil {
		return fmt.Errorf("reading the RayCluster again: %w", err)
	}
	again := func(why string) error { return fmt.Errorf("%s: %w", why, nodepool.ErrConflict) }
	awake := fresh
	awake.Suspended = false
	asked, why := c.config.modes().Effective(awake)
	now := c.config.Now()
	resumes, wanted := step.Action == nodepool.ResumeIdle, warm.Wanted(&fresh, now)
	kept := cmp.Or(wanted, warm.Requested(&fresh, now), warm.Prevented(&fresh))
	switch {
	case fresh.UID != before.UID || fresh.Generation != before.Generation || fresh.Suspended != before.Suspended ||
		!fresh.IdleSince.Equal(before.IdleSince):
		return again("the RayCluster has changed")
	case !resumes && !sameIdle(fresh.Policy, before.Policy):
		return again("its capacity policy has changed")
	case asked != nodepool.Managed:
		return again(why.Message)
	case resumes && wanted == "":
		return again("nothing wants it any more")
	case !resumes && kept != "":
		return again(kept)
	}
	view := o.view
	view.Cluster = fresh
	if !fresh.Suspended {
		if view.State, err = c.readRay(ctx, r, fresh, now, 0); err != nil {
			return fmt.Errorf("reading Ray again: %w", err)
		}
		if view.State.Session != o.view.State.Session {
			return again("Ray was started again")
		}
		if work := warm.Work(&view); work != "" {
			return again(work)
		}
		if observe.LivingHead(view.State.Nodes) == nil {
			return again("Ray reports no living head")
		}
		found, err := c.occupants(ctx, r) // last, because a driver may have connected meanwhile
		if err != nil {
			return fmt.Errorf("looking again at what lives in it: %w", err)
		}
		if found.Drivers.Count+found.Actors.Count+found.PlacementGroups.Count > 0 {
			return again("a driver, an actor or a placement group has come")
		}
	}
	o.view.Cluster = fresh
	return nil
}

// sameIdle reports whether two policies say the same about the end of a RayCluster without work.
func sameIdle(a, b *capacity.Written) bool {
	return a != nil && b != nil && a.Idle != nil && b.Idle != nil && *a.Idle == *b.Idle
}
