package nodes

import (
	"maps"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

// markGoing adds to the workers of a cluster what their nodes and NodeClaims say about their end. It reads what the
// watches show now, not the last view of nodes: between the taint of a node and the deletion of its pods there may
// be 50 ms. A node that was never seen says nothing: the watch of nodes may be behind, and Ray does not take a drain
// back.
func (w *Watch) markGoing(cluster *nodepool.Cluster) {
	w.claims.mu.Lock()
	leaving := w.claims.leaving // it is never changed
	w.claims.mu.Unlock()
	bad := badGPUs{}
	if view := w.nodes.view.Load(); view != nil {
		bad = view.badGPUs
	}
	w.nodes.mu.Lock()
	for i := range cluster.Workers {
		worker := &cluster.Workers[i]
		if worker.Node == "" || worker.Failed {
			continue
		}
		var notice *departure.Notice
		if worker.NodeGone && w.nodes.absent.deleted[worker.Node] {
			notice = departure.Of(departure.NodeGone, "the Node no longer exists")
		}
		node := w.nodes.byName[worker.Node]
		machine := departure.Earlier(leaving[worker.Node], node.going)
		if cameAfter(worker, machine, node.goes) {
			machine = machine.AsWarning()
		}
		worker.Going = departure.Earlier(departure.Earlier(notice, machine), worker.Going)
		worker.Going = departure.Earlier(worker.Going, bad.notice(cluster, worker, time.Now()))
	}
	w.nodes.mu.Unlock()
	cluster.SpreadGoing()
}

// settles is for the difference between the clocks of this process and the API server, and for pods that were being
// scheduled when the sign appeared.
const settles = 5 * time.Second

// cameAfter reports whether the scheduler put a pod on a machine although the machine was already about to go: the pod
// tolerates its taint, or there is none. It is not drained. Its replacement could come to the same machine, and so
// could that one's, without an end.
func cameAfter(w *nodepool.Worker, machine *departure.Notice, goes time.Time) bool {
	if machine == nil || !machine.Certain {
		return false
	}
	if goes.IsZero() {
		goes = machine.Since // of the NodeClaim
	}
	return !goes.IsZero() && w.ScheduledAt.After(goes.Add(settles))
}

// noteLeaving keeps what a NodeClaim says about the end of its node. The caller holds mu.
func (c *claimWatch) noteLeaving(claim, node string, notice *departure.Notice) {
	before := c.leavingNode[claim]
	if notice == nil && before == "" {
		return
	}
	leaving := make(map[string]*departure.Notice, len(c.leaving)+1)
	maps.Copy(leaving, c.leaving)
	delete(leaving, before)
	delete(c.leavingNode, claim)
	if notice != nil {
		leaving[node], c.leavingNode[claim] = notice, node
	}
	c.leaving = leaving
}
