package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxDrains bounds the drains of one cycle, so that growth never waits long behind them. The hosts of one replica are
// asked together, even beyond the bound.
const maxDrains = 16

// drain asks nodes to leave, one after the other; the next host of a multi-host replica only after the one before
// agreed. The first call that fails ends the round: its raylet may hang, and growth must not wait behind more such
// calls. An outdated reading or a freeze ends it too. The next cycle asks for the rest.
func (c *Controller) drain(ctx context.Context, r *record, o *outcome) {
	if len(o.intent.Drains) == 0 {
		return
	}
	if behind := r.memory.Patches.OperatorBehind(o.view); behind != "" {
		o.paused = behind
		return
	}
	refused := map[string]bool{}
	for _, w := range drainRound(o.intent.Drains) {
		if w.Replica != "" && refused[w.Replica] {
			continue
		}
		if !c.kube.MayWrite(o.view.Cluster.Key) || c.config.Now().Sub(o.rereadAt) > scaledown.ReadingValidity ||
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
func drainRound(drains []scaledown.DrainRequest) []scaledown.DrainRequest {
	drains = slices.Clone(drains)
	slices.SortStableFunc(drains, func(a, b scaledown.DrainRequest) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Replica, b.Replica))
	})
	for n := maxDrains; n < len(drains); n++ {
		if replica := drains[n].Replica; replica == "" || replica != drains[n-1].Replica {
			return drains[:n]
		}
	}
	return drains
}

// drainDeparting drains the nodes that are about to lose their machine. The first call that fails ends the round, as in
// drain. Ray does not take a drain back, so the sign must still be there right before the call, and the node as idle or
// busy as before: the steps before this one may have taken seconds.
func (c *Controller) drainDeparting(ctx context.Context, r *record, o *outcome) {
	going := r.memory.Departing(o.view)
	if len(going) > 0 && c.config.Now().Sub(o.view.ReadAt) > scaledown.ReadingValidity {
		nodes, err := c.nodesNow(ctx, r, o.view)
		if err != nil {
			return // the next cycle reads it again
		}
		going = scaledown.Set{Drains: going}.ConfirmedByRay(observe.Join(o.view.Cluster, nodes), true).Drains
	}
	for _, w := range going[:min(len(going), maxDrains)] {
		now, err := c.kube.Cluster(ctx, o.view.Cluster.Key)
		if err != nil || !c.kube.MayWrite(o.view.Cluster.Key) || !c.manages(o.view.Cluster, now) {
			return
		}
		if !stillGoes(now, w.Pod) {
			continue
		}
		action := c.ask(ctx, r, w)
		o.actions = append(o.actions, action)
		c.recordDrain(ctx, o, w, action)
		if action.Result == decision.ResultError {
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

// ask sends one drain. It notes the drain before the call, so that a drain whose answer is lost counts as accepted for
// a while.
func (c *Controller) ask(ctx context.Context, r *record, w scaledown.DrainRequest) decision.Action {
	started := c.config.Now()
	entry := r.memory.Drains().Begin(w, started)
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
