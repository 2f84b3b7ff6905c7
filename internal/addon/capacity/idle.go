package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// endIdle suspends or deletes a RayCluster that has been without work for as long as its capacity policy says, and
// resumes one that Heliostat has suspended when a request or the policy wants capacity.
func (f *feature) endIdle(ctx context.Context, o *addon.Cycle) {
	if o.Err != nil || o.Withheld {
		return
	}
	v, policy := &o.View, o.View.Cluster.Policy
	if v.Cluster.Suspended {
		f.endSuspended(ctx, o)
		return
	}
	if policy == nil || policy.Idle == nil || *policy.Idle == (capacity.Idle{}) {
		return
	}
	if f.sidecar {
		o.Idle = "not suspended or deleted: the sidecar would end with it, and nobody could resume it"
		return
	}
	if v.Mode != nodepool.Managed {
		o.Idle = "not suspended or deleted: " + v.Why.Message
		return
	}
	doubt := f.loop.Doubt(*v)
	f.idleClock.Observe(v, doubt)
	step := f.idleClock.Next(v, policy.Idle, doubt)
	if step.Do == Look {
		found, err := f.occupants(ctx)
		if ctx.Err() != nil {
			return
		}
		f.idleClock.Looked(f.loop.Now(), found, err)
		step = f.idleClock.Next(v, policy.Idle, doubt)
	}
	f.carryOut(ctx, o, step)
}

// occupants reads what lives in the Ray cluster.
func (f *feature) occupants(ctx context.Context) (raydemand.Occupants, error) {
	ray := f.loop.Ray()
	if ray == nil {
		return raydemand.Occupants{}, errors.New("there is no connection to the head")
	}
	ctx, cancel := context.WithTimeout(ctx, f.loop.CallTimeout())
	defer cancel()
	return ray.Occupants(ctx)
}

// endSuspended resumes or deletes a RayCluster that Heliostat has suspended, if it would manage it otherwise.
func (f *feature) endSuspended(ctx context.Context, o *addon.Cycle) {
	cluster := o.View.Cluster
	if cluster.IdleSince.IsZero() {
		f.idleClock = IdleClock{}
		return
	}
	cluster.Suspended = false
	if now, why := f.loop.Effective(cluster); now != nodepool.Managed {
		f.idleClock = IdleClock{} // what was announced is void
		o.Idle = "suspended, and not resumed or deleted: " + why.Message
		return
	}
	var idle *capacity.Idle
	if cluster.Policy != nil {
		idle = cluster.Policy.Idle
	}
	f.carryOut(ctx, o, f.idleClock.Suspended(&o.View.Cluster, o.View.Now, idle))
}

// carryOut announces the end of a RayCluster without work, or ends it. It reads the RayCluster from the API server and
// Ray once more, and ends or resumes exactly what it has read.
func (f *feature) carryOut(ctx context.Context, o *addon.Cycle, step IdleStep) {
	o.Idle = step.Text
	switch step.Do {
	case Announce:
		f.loop.Emit(ctx, o.View, addon.Event{Warning: true, Reason: addon.ReasonIdleAnnounced,
			Message: "It will be " + step.Text})
	case End:
		f.end.Round(ctx, f.loop, o, 1, func(int) (addon.Action, error) {
			err := f.stillIdle(ctx, o, step)
			if err == nil {
				err = f.writer.EndIdle(ctx, nodepool.IdleChange{Cluster: o.View.Cluster.Key, UID: o.View.Cluster.UID,
					ResourceVersion: o.View.Cluster.ResourceVersion, Generation: o.View.Cluster.Generation,
					Action: step.Action, Since: step.Since})
			}
			if err == nil {
				f.idleClock = IdleClock{}
				f.loop.Emit(ctx, o.View, addon.Event{Reason: idleReasons[step.Action], Message: step.Text})
			} else {
				o.Idle = fmt.Sprintf("%s failed and is decided again: %v", step.Action, err)
			}
			return addon.Action{Kind: addon.ActionIdle, Message: string(step.Action) + ": " + step.Text}, err
		})
		if err := f.end.Err; err != nil {
			o.Idle = fmt.Sprintf("%s failed: %v", step.Action, err)
		}
	}
}

var idleReasons = map[nodepool.IdleAction]string{
	nodepool.SuspendIdle: addon.ReasonIdleSuspended,
	nodepool.ResumeIdle:  addon.ReasonIdleResumed,
	nodepool.DeleteIdle:  addon.ReasonIdleDeleted,
}

// stillIdle returns why a RayCluster must not be suspended, resumed or deleted after all. The view has the fresh object
// afterwards.
func (f *feature) stillIdle(ctx context.Context, o *addon.Cycle, step IdleStep) error {
	before := &o.View.Cluster
	fresh, err := f.loop.Fresh(ctx, before.Key)
	if err != nil {
		return fmt.Errorf("reading the RayCluster again: %w", err)
	}
	again := func(why string) error { return fmt.Errorf("%s: %w", why, nodepool.ErrConflict) }
	awake := fresh
	awake.Suspended = false
	asked, why := f.loop.Effective(awake)
	now := f.loop.Now()
	resumes, wanted := step.Action == nodepool.ResumeIdle, Wanted(&fresh, now)
	kept := cmp.Or(wanted, Requested(&fresh, now), Prevented(&fresh))
	switch {
	case fresh.UID != before.UID || fresh.ResourceVersion != before.ResourceVersion:
		return again("the RayCluster has changed")
	case asked != nodepool.Managed:
		return again(why.Message)
	case resumes && wanted == "":
		return again("nothing wants it any more")
	case !resumes && kept != "":
		return again(kept)
	}
	view := o.View
	view.Cluster = fresh
	if !fresh.Suspended {
		if view.State, err = f.loop.ReadRay(ctx, fresh, now); err != nil {
			return fmt.Errorf("reading Ray again: %w", err)
		}
		if view.State.Session != o.View.State.Session {
			return again("Ray was started again")
		}
		if work := Work(&view); work != "" {
			return again(work)
		}
		if observe.LivingHead(view.State.Nodes) == nil {
			return again("Ray reports no living head")
		}
		found, err := f.occupants(ctx) // last, because a driver may have connected meanwhile
		if err != nil {
			return fmt.Errorf("looking again at what lives in it: %w", err)
		}
		if found.Drivers.Count+found.Actors.Count+found.PlacementGroups.Count > 0 {
			return again("a driver, an actor or a placement group has come")
		}
	}
	o.View.Cluster = fresh
	return nil
}
