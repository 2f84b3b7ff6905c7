package capacity

import (
	"context"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// endIdle suspends a RayCluster that has been without work for as long as its capacity policy says, and resumes one
// that Heliostat has suspended when a request or the policy wants capacity.
func (f *feature) endIdle(ctx context.Context, o *addon.Cycle) {
	if o.Err != nil || o.Withheld {
		return
	}
	v, policy := &o.View, o.View.Cluster.Policy
	if v.Cluster.Suspended {
		f.endSuspended(ctx, o)
		return
	}
	if policy == nil || policy.Idle == nil || policy.Idle.SuspendAfter == 0 {
		return
	}
	if f.sidecar {
		o.Idle = "not suspended: the sidecar would end with it, and nobody could resume it"
		return
	}
	if v.Mode != nodepool.Managed {
		o.Idle = "not suspended: " + v.Why.Message
		return
	}
	doubt, after := f.loop.Doubt(*v), time.Duration(policy.Idle.SuspendAfter)
	f.idleClock.Observe(v, doubt)
	step := f.idleClock.Next(v, after, doubt)
	if step.Do == Look {
		found, err := addon.Call(ctx, f.loop, addon.Ray.Occupants)
		if ctx.Err() != nil {
			return
		}
		f.idleClock.Looked(f.loop.Now(), found, err)
		step = f.idleClock.Next(v, after, doubt)
	}
	switch o.Idle = step.Text; step.Do {
	case Announce:
		f.loop.Emit(ctx, *v, addon.Event{Warning: true, Reason: addon.ReasonIdleAnnounced,
			Message: "It will be " + step.Text})
	case End:
		f.write(ctx, o, nodepool.IdleChange{Since: step.Since}, addon.ReasonIdleSuspended)
	}
}

// endSuspended resumes a RayCluster that Heliostat has suspended, if it would manage it otherwise.
func (f *feature) endSuspended(ctx context.Context, o *addon.Cycle) {
	cluster := o.View.Cluster
	f.idleClock = IdleClock{}
	if cluster.IdleSince.IsZero() {
		return
	}
	cluster.Suspended = false
	now, why := f.loop.Effective(cluster)
	switch wanted := Wanted(&cluster, o.View.Now); {
	case now != nodepool.Managed:
		o.Idle = "suspended, and not resumed: " + why.Message
	case wanted == "":
		o.Idle = "suspended: without work since " + moment(cluster.IdleSince)
	case cluster.Queue.Queued():
		o.Idle = "suspended, and not resumed: Kueue decides when it runs"
	default:
		o.Idle = "resumed: " + wanted
		f.write(ctx, o, nodepool.IdleChange{Resume: true}, addon.ReasonIdleResumed)
	}
}

// write suspends or resumes a RayCluster. It reads the RayCluster from the API server and Ray once more, and changes
// exactly what it has read.
func (f *feature) write(ctx context.Context, o *addon.Cycle, change nodepool.IdleChange, reason string) {
	text, v := o.Idle, &o.View
	if f.end.Resting(v.Now) {
		o.Idle = fmt.Sprintf("not %s: %v", text, f.end.Err)
		return
	}
	f.end.Round(ctx, f.loop, o, 1, func(int) (addon.Action, error) {
		err := f.stillIdle(ctx, o, change.Resume)
		if err == nil {
			change.Cluster, change.UID = v.Cluster.Key, v.Cluster.UID
			change.ResourceVersion, change.Generation = v.Cluster.ResourceVersion, v.Cluster.Generation
			err = f.writer.EndIdle(ctx, change)
		}
		if err == nil {
			f.idleClock = IdleClock{}
			f.loop.Emit(ctx, *v, addon.Event{Reason: reason, Message: text})
		} else {
			o.Idle = fmt.Sprintf("not %s: %v", text, err)
		}
		return addon.Action{Kind: addon.ActionIdle, Message: text}, err
	})
}

// stillIdle returns why a RayCluster must not be suspended or resumed after all. The view has the fresh object
// afterwards.
func (f *feature) stillIdle(ctx context.Context, o *addon.Cycle, resumes bool) error {
	before := &o.View.Cluster
	fresh, err := f.loop.Fresh(ctx, before.Key)
	if err != nil {
		return fmt.Errorf("reading the RayCluster again: %w", err)
	}
	again := func(why string) error { return fmt.Errorf("%s: %w", why, nodepool.ErrConflict) }
	awake := fresh
	awake.Suspended = false
	asked, why := f.loop.Effective(awake)
	now, prevented := f.loop.Now(), Prevented(&fresh)
	switch {
	case fresh.UID != before.UID || fresh.ResourceVersion != before.ResourceVersion:
		return again("the RayCluster has changed")
	case asked != nodepool.Managed:
		return again(why.Message)
	case resumes && Wanted(&fresh, now) == "":
		return again("nothing wants it any more")
	case !resumes && prevented != "":
		return again(prevented)
	}
	view := o.View
	view.Cluster = fresh
	if !resumes {
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
		found, err := addon.Call(ctx, f.loop, addon.Ray.Occupants) // last: a driver may have connected meanwhile
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
