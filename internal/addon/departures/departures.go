// Package departures drains the nodes of workers whose machine is about to go: Ray places nothing new there, Serve
// moves its replicas and Train saves its state. It takes no pod away. What shows that a machine goes is in
// pkg/nodepool/departure; which nodes may be drained is decided in package scaledown.
package departures

import (
	"context"
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// most bounds the drains of one cycle, so that growth never waits long behind them.
const most = 16

// New returns the addon.
func New() addon.Addon {
	return addon.Addon{New: func(loop addon.Loop) addon.Feature {
		return addon.Feature{AfterDrains: departures{loop}.drain}
	}}
}

type departures struct{ loop addon.Loop }

// drain drains the nodes that are about to lose their machine. The first call that fails ends the round, as for idle
// nodes. Ray does not take a drain back, so the sign must still be there right before the call, and the node as idle or
// busy as before: the steps before this one, and the drains before it, may have taken seconds.
func (d departures) drain(ctx context.Context, o *addon.Cycle) {
	if o.View.Mode != nodepool.Managed || !o.View.Live() || o.Withheld {
		return
	}
	going, readAt := d.loop.Departing(o.View), o.View.ReadAt
	if len(going) > 0 && d.loop.Now().Sub(readAt) > scaledown.ReadingValidity {
		nodes, err := d.loop.NodesNow(ctx, o.View)
		if err != nil {
			return // the next cycle reads it again
		}
		readAt = d.loop.Now()
		going = scaledown.Set{Drains: going}.ConfirmedByRay(observe.Join(o.View.Cluster, nodes), true).Drains
	}
	for _, w := range going[:min(len(going), most)] {
		now, err := d.loop.Cluster(ctx, o.View.Cluster.Key)
		if err != nil || !d.loop.MayWrite(o.View.Cluster.Key) || !d.loop.Manages(o.View.Cluster, now) ||
			d.loop.Now().Sub(readAt) > scaledown.ReadingValidity {
			return
		}
		if !stillGoes(now, w.Pod) || (w.GivenBack || w.BadGPU) && (d.loop.Paused(o.View) != "" ||
			d.loop.OperatorBehind(o.View) != "" || !d.loop.MayTakeAway(ctx, o.View.Cluster)) {
			continue
		}
		if d.loop.Drain(ctx, o, w).Result == addon.ResultError {
			return
		}
	}
}

// stillGoes reports whether the machine of a pod certainly goes.
func stillGoes(cluster nodepool.Cluster, pod string) bool {
	return slices.ContainsFunc(cluster.Workers, func(w nodepool.Worker) bool {
		return w.Pod == pod && w.Going != nil && w.Going.Certain
	})
}
