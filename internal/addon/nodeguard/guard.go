// Package nodeguard decides which pods of a managed RayCluster must not be evicted to remove their node: the head,
// workers with work by Ray's account, and workers that may get work at any moment. guard.go decides which annotations
// to write and to remove, most urgent first; protect.go is the step of the loop that does it. The package must not
// decide which workers leave.
package nodeguard

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// calm is how long a worker must need no guard before it loses it, so that a pause between two tasks costs no writes.
// Karpenter acts at the earliest 20 s after a guard is gone (docs/reference/facts.md#guards-of-node-autoscalers).
const calm = 2 * time.Second

// Facts are what the rule needs to know beside the view.
type Facts struct {
	// Trusted says that Ray's reading is complete and recent; while it is not, no guard is removed.
	Trusted bool
	// HandBack removes what is no longer needed and adds nothing.
	HandBack bool
	// Drained reports whether Ray agreed to end an idle node, so that it never gets work again.
	Drained func(raydemand.NodeID) bool
	// JoinTime is how long a pod may take from its last step to join Ray before it counts as unable to.
	JoinTime time.Duration
}

// Keeper remembers, by the UID of a pod, when the pod last needed its guard, and the last write. If it is lost, guards
// stay for the time calm longer.
type Keeper struct {
	needed map[string]time.Time
	tried  map[string]try
}

// try is a write to a version of a pod, and whether it failed. If it did not, the version is no longer the newest.
type try struct {
	version string
	failed  bool
}

// urgency orders the writes of one cycle: pods with work first, then those that may get it, then what is to be removed.
type urgency int

const (
	working urgency = iota
	mayWork
	joins
	drained
	idle
	reservation
	// settled: nothing is known that requires a write.
	settled
)

// pod is one pod, and how urgently its guard must be there (working to joins) or be gone (drained to reservation).
type pod struct {
	nodepool.GuardChange
	urgency urgency
}

// Changes returns the writes that v requires, most urgent first. Those that failed come last: an admission policy may
// refuse some pods, and the others must not wait for them.
func (k *Keeper) Changes(v observe.View, f Facts) []nodepool.GuardChange {
	pods := k.pods(v, f)
	pods = slices.DeleteFunc(pods, func(p pod) bool { return !k.due(p, f) })
	slices.SortStableFunc(pods, func(a, b pod) int { return cmp.Compare(a.urgency, b.urgency) })
	changes := make([]nodepool.GuardChange, 0, len(pods))
	for _, failed := range []bool{false, true} {
		for i := range pods {
			if k.tried[pods[i].UID].failed == failed {
				changes = append(changes, pods[i].GuardChange)
			}
		}
	}
	return changes
}

// Tried notes that a change, one of Changes, was written or how that failed. After a write or a conflict, nothing is
// written to the pod until the caches show another version of it.
func (k *Keeper) Tried(change nodepool.GuardChange, err error) {
	if !errors.Is(err, nodepool.ErrReadOnly) && !errors.Is(err, nodepool.ErrNotLeading) {
		k.tried[change.UID] = try{change.Read.Version, addon.Failed(err)}
	}
}

// due reports whether the pod's annotations differ from what is right.
func (k *Keeper) due(p pod, f Facts) bool {
	last, tried := k.tried[p.UID]
	if tried && !last.failed && last.version == p.Read.Version || p.urgency == settled {
		return false
	}
	if p.Keep {
		return !f.HandBack && !p.Read.Complete()
	}
	return p.Read.Ours && (f.Trusted || p.urgency == drained)
}

// pods judges the head and all workers, and forgets pods that are gone.
func (k *Keeper) pods(v observe.View, f Facts) []pod {
	waits := demandWaits(v)
	needed, tried := make(map[string]time.Time, len(v.Members)), map[string]try{}
	all := make([]pod, 0, len(v.Members)+1)
	judge := func(name, uid string, read nodepool.Guard, u urgency) {
		if last, known := k.tried[uid]; known {
			tried[uid] = last
		}
		switch last, known := k.needed[uid]; {
		case u <= joins || (u == idle || u == reservation) && !known:
			needed[uid] = v.Now
		case known:
			needed[uid] = last
		}
		rest := v.Now.Sub(needed[uid])
		if u == idle && rest < calm || u == reservation && rest < raydemand.ProcessStart {
			u = settled
		}
		change := nodepool.GuardChange{Cluster: v.Cluster.Key, Pod: name, UID: uid, Read: read, Keep: u <= joins}
		all = append(all, pod{change, u})
	}
	if h := v.Cluster.Head; h.Pod != "" {
		judge(h.Pod, h.PodUID, h.Guard, headUrgency(f))
	}
	for _, m := range v.Members {
		judge(m.Pod, m.UID, m.Guard, f.urgencyOf(v, m, waits))
	}
	k.needed, k.tried = needed, tried
	return all
}

// headUrgency: without its head, a RayCluster loses all its work. What Heliostat no longer manages, it no longer keeps.
func headUrgency(f Facts) urgency {
	if f.HandBack {
		return drained
	}
	return working
}

// urgencyOf is the rule for one worker.
func (f Facts) urgencyOf(v observe.View, m observe.Member, waits bool) urgency {
	switch {
	case m.Terminating || m.Failed || m.NodeGone || !v.Live():
		return settled // annotations no longer change its fate, or nobody knows what runs in it
	case m.Named && !m.Returned:
		return drained
	case m.Node != nil && f.Drained(m.Node.ID):
		return drained
	case m.Goes() && onlyReserved(m.Node):
		return reservation
	case m.Joined() && works(m.Node):
		return working
	case m.Joined() && waits:
		return mayWork
	case m.Node == nil && observe.Placed(m) && v.Now.Sub(lastStep(m.Worker)) < f.JoinTime:
		return joins
	case m.Node == nil && !observe.Placed(m):
		return settled
	}
	return idle
}

// works reports whether a living node has work by Ray's account. A draining node that was not idle ends with its work,
// so as long as it lives it has some (docs/reference/facts.md#drain-deadline).
func works(n *raydemand.Node) bool {
	return n.Status != raydemand.Idle || !n.Available.Fits(n.Total)
}

// onlyReserved reports whether a draining node has resources in use and nothing that runs, as where placement groups
// reserve it. Ray places nothing on such a node, also not the work that the reservation is for, and reserves another
// node only when this one is gone: with a guard, that work would wait without end
// (docs/reference/facts.md#drain-reservations).
func onlyReserved(n *raydemand.Node) bool {
	if n == nil || n.Status != raydemand.Draining {
		return false
	}
	a := raydemand.ReadActivity(n.Activity)
	return len(a.Resources) > 0 && !a.Workers && !a.Arguments && !a.Objects && len(a.Unknown) == 0
}

// lastStep is when the pod last came closer to joining Ray.
func lastStep(w *nodepool.Worker) time.Time {
	last := w.CreatedAt
	for _, at := range []time.Time{w.ScheduledAt, w.StartedAt} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// demandWaits reports whether any idle worker may get work at any moment. What waits is not compared with the workers:
// a guard too many costs a write, and Heliostat itself removes idle workers whether they have one or not.
func demandWaits(v observe.View) bool {
	waits := &v.State.Demand
	return len(waits.Requests)+len(waits.Gangs) > 0 || v.State.Truncated
}
