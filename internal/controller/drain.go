package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxDrains bounds the drains of one cycle, so that growth never waits long behind them. The hosts of one replica are
// asked together, even beyond the bound.
const maxDrains = 16

// drain asks nodes to leave, one after the other; the next host of a multi-host replica only after the one before
// agreed. The first call that fails ends the round: its raylet may hang, and growth must not wait behind more such
// calls. An outdated reading or a freeze ends it too. The next cycle asks for the rest.
func (c *Controller) drain(ctx context.Context, r *record, o *addon.Cycle) {
	if len(o.Intent.Drains) == 0 {
		return
	}
	if behind := r.memory.Patches.OperatorBehind(o.View); behind != "" {
		o.Paused = behind
		return
	}
	refused := map[string]bool{}
	for _, w := range drainRound(o.Intent.Drains) {
		if w.Replica != "" && refused[w.Replica] {
			continue
		}
		if !c.kube.MayWrite(o.View.Cluster.Key) || c.config.Now().Sub(o.RereadAt) > scaledown.ReadingValidity ||
			!c.mayStillTakeAway(ctx, o.View.Cluster) {
			return
		}
		switch c.ask(ctx, r, o, w).Result {
		case addon.ResultRefused:
			refused[w.Replica] = true
		case addon.ResultError:
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

// ask sends one drain and records the answer. It notes the drain before the call, so that a drain whose answer is lost
// counts as accepted for a while.
func (c *Controller) ask(
	ctx context.Context, r *record, o *addon.Cycle, w scaledown.DrainRequest,
) addon.Action {
	started := c.config.Now()
	entry := r.memory.drains.Begin(w, started)
	call, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	action := addon.Action{At: started, Kind: addon.ActionDrain, Group: w.Group, Pods: []string{w.Pod}}
	reply, err := r.gcs.Ray.Drain(call,
		raydemand.Drain{Node: w.Node, Reason: w.Reason, Message: w.Message, Deadline: w.Deadline})
	action.Took = c.config.Now().Sub(started)
	switch {
	case err != nil:
		action.Result, action.Message = addon.ResultError, err.Error()
	case reply.Accepted:
		entry.Accept()
		action.Result, action.Message = addon.ResultOK, w.Message
	default:
		entry.Refuse(started)
		action.Result, action.Message = addon.ResultRefused, reply.Message
	}
	o.Actions = append(o.Actions, action)
	c.recordDrain(ctx, o, w, action)
	return action
}

// unsteady is how long work may come and go on a node before the node is drained while something runs there. It is a
// quarter of the warning that spot machines of AWS get.
const unsteady = 30 * time.Second

// Departing returns the drains of nodes that are about to lose their machine, and of which Ray has shown what it placed
// there.
func (m *memory) Departing(v observe.View, wait time.Duration) []scaledown.DrainRequest {
	return m.drains.Going(v, wait, func(member observe.Member) bool { return m.settled(v.Now, member) })
}

// settled reports whether Ray has shown what it placed on a node, so that a drain ends no node on which work is just
// being placed. Something in use proves nothing for a while: drained soon after it had joined, or after its last work
// had ended, such a node ended at once (docs/reference/facts.md#drain-race). Nor does the idle time of a node that this
// process has just seen for the first time: Ray counts it from the start of the raylet.
func (m *memory) settled(now time.Time, member observe.Member) bool {
	if m.clock.SeenFor(now, member.Node.ID) < observe.PlacedShown {
		return false
	}
	shown := m.clock.UsedFor(now, member.Node.ID)
	switch observe.UseOf(member.Node) {
	case observe.Unused:
		return m.clock.IdleFor(now, member.Node) >= observe.PlacedShown
	case observe.Works:
		return shown >= observe.PlacedShown || m.clocks.GoingFor(member.Pod, now) >= unsteady
	}
	return shown >= raydemand.ProcessStart
}
