package controller

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// confirm reads the RayCluster from the API server before anything is taken away, and decides again with it. Whatever
// the fresh object forbids, such as freeze, holds for the whole cycle.
func (c *Controller) confirm(ctx context.Context, r *record, o *addon.Cycle) {
	looking := r.memory.WantsFreshList(o.View.Now)
	o.Paused = c.paused(r, o.View)
	if behind := r.memory.Patches.OperatorBehind(o.View); behind != "" && len(o.Intent.Drains) > 0 {
		o.Paused, o.Intent.Drains = behind, nil
	}
	if o.View.Mode != nodepool.Managed || (!o.Intent.Any() && !looking) {
		return
	}
	if c.paused(r, o.View) != "" && !looking {
		if o.Intent.Set = o.Intent.OnlyWaiting(); !o.Intent.Any() || r.memory.Patches.rest.Resting(o.View.Now) {
			o.Intent = o.Intent.WithoutReductions()
			return
		}
	}
	fresh, err := c.kube.Fresh(ctx, o.View.Cluster.Key)
	r.memory.FreshRead(o.View.Now, err)
	if err != nil {
		o.Paused = c.paused(r, o.View)
		o.Intent = o.Intent.WithoutReductions()
		return
	}
	c.redecide(r, o, fresh, looking)
	c.rereadRay(ctx, r, o)
}

func (c *Controller) redecide(r *record, o *addon.Cycle, fresh nodepool.Cluster, looking bool) {
	first := o.Intent
	if fresh.UID != o.View.Cluster.UID {
		o.Paused, o.Intent = "the RayCluster was deleted and created again", first.WithoutReductions()
		o.Intent.Launch, o.Withheld, o.Again = nil, true, true
		return
	}
	fresh.Promise(o.View.Cluster.Promised)
	o.View.Cluster = fresh
	o.View.Members = observe.Join(fresh, o.View.State.Nodes)
	o.View.Mode, o.View.Why = c.config.Effective(fresh)
	r.memory.drains.BoundBadGPUs(&o.View, c.config.DrainBadGPUs, c.config.DrainDeadline)
	r.memory.RememberFresh(&o.View, &c.config, looking)
	o.Intent = r.memory.Decide(o.View, &c.config, c.compute, r.features)
	o.Intent.Set = first.Set.ConfirmedBy(o.Intent.Set) // two lists support each reduction
	if o.Paused = c.paused(r, o.View); o.Paused != "" {
		o.Intent.Set = o.Intent.OnlyWaiting()
	}
}

// rereadRay reads Ray again after the fresh list, which may have taken seconds: a pod may have joined, or an idle node
// may have work. It keeps the reductions that still hold.
func (c *Controller) rereadRay(ctx context.Context, r *record, o *addon.Cycle) {
	if !o.Intent.Any() {
		return
	}
	o.RereadAt = c.config.Now()
	nodes, err := c.nodesNow(ctx, r, o.View)
	if err != nil {
		o.Paused = fmt.Sprintf("reading Ray again before a reduction failed: %v", err)
		o.Intent = o.Intent.WithoutReductions()
		return
	}
	slow := c.config.Now().Sub(o.RereadAt) > scaledown.ReadingValidity
	hidden := len(observe.Orphans(o.View.Cluster, nodes)) > 0
	o.Intent.Set = o.Intent.ConfirmedByRay(observe.Join(o.View.Cluster, nodes), !slow && !hidden)
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
	return err == nil && c.manages(before, now) && now.Unknown() == ""
}

func (c *Controller) manages(before, now nodepool.Cluster) bool {
	if now.UID != before.UID || now.Writable() != nil {
		return false
	}
	mode, _ := c.config.Effective(now)
	return mode == nodepool.Managed
}

// mayGuardNow reports whether the caches still show the same RayCluster in the same mode, and what belongs to it may be
// written. Of one that is suspended or in a queue it may, if it was before: each write says whether it does.
func (c *Controller) mayGuardNow(before observe.View, now nodepool.Cluster) bool {
	mode, _ := c.config.Effective(now)
	same := now.UID == before.Cluster.UID && mode == before.Mode &&
		(now.Writable() == nil) == (before.Cluster.Writable() == nil)
	now.Suspended, now.Queue = false, nodepool.Queue{}
	return same && now.Writable() == nil
}
