package controller

import (
	"context"
	"fmt"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// confirm reads the RayCluster from the API server before anything is taken away, and decides again with it. Whatever
// the fresh object forbids, such as freeze, holds for the whole cycle.
func (c *Controller) confirm(ctx context.Context, r *record, o *outcome) {
	looking := r.memory.WantsFreshList(o.view.Now)
	o.paused = c.paused(r, o.view)
	if behind := r.memory.Patches.OperatorBehind(o.view); behind != "" && len(o.intent.Drains) > 0 {
		o.paused, o.intent.Drains = behind, nil
	}
	if o.view.Mode != nodepool.Managed || (!o.intent.Any() && !looking) {
		return
	}
	if c.paused(r, o.view) != "" && !looking {
		if o.intent.Set = o.intent.OnlyWaiting(); !o.intent.Any() || r.memory.Patches.Rest(o.view.Now) {
			o.intent = o.intent.WithoutReductions()
			return
		}
	}
	fresh, err := c.kube.Fresh(ctx, o.view.Cluster.Key)
	r.memory.FreshRead(o.view.Now, err)
	if err != nil {
		o.paused = c.paused(r, o.view)
		o.intent = o.intent.WithoutReductions()
		return
	}
	c.redecide(ctx, r, o, fresh, looking)
	c.rereadRay(ctx, r, o)
}

func (c *Controller) redecide(ctx context.Context, r *record, o *outcome, fresh nodepool.Cluster, looking bool) {
	first := o.intent
	if fresh.UID != o.view.Cluster.UID {
		o.paused, o.intent = "the RayCluster was deleted and created again", first.WithoutReductions()
		o.intent.Launch, o.withheld, o.again = nil, true, true
		return
	}
	fresh.Promise(o.view.Cluster.Promised)
	o.view.Cluster = fresh
	o.view.Members = observe.Join(fresh, o.view.State.Nodes)
	o.view.Mode, o.view.Why = c.config.modes().Effective(fresh)
	r.memory.RememberFresh(&o.view, c.config.memory(), looking)
	second, err := c.plan(ctx, r, o.view)
	if err != nil { // the process ends
		o.intent, o.withheld = first.WithoutReductions(), true
		o.intent.Launch = nil
		return
	}
	o.paused = c.paused(r, o.view)
	o.intent = first.ConfirmedBy(second)
	if o.paused != "" {
		o.intent.Set = o.intent.OnlyWaiting()
	}
}

// rereadRay reads Ray again after the fresh list, which may have taken seconds: a pod may have joined, or an idle node
// may have work. It keeps the reductions that still hold.
func (c *Controller) rereadRay(ctx context.Context, r *record, o *outcome) {
	if !o.intent.Any() {
		return
	}
	o.rereadAt = c.config.Now()
	nodes, err := c.nodesNow(ctx, r, o.view)
	if err != nil {
		o.paused = fmt.Sprintf("reading Ray again before a reduction failed: %v", err)
		o.intent = o.intent.WithoutReductions()
		return
	}
	slow := c.config.Now().Sub(o.rereadAt) > scaledown.ReadingValidity
	hidden := len(observe.Orphans(o.view.Cluster, nodes)) > 0
	o.intent.Set = o.intent.ConfirmedByRay(observe.Join(o.view.Cluster, nodes), !slow && !hidden)
}
