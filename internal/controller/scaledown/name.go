package scaledown

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Why a pod is deleted by name: stable codes of log lines and Events.
const (
	removedDrained  = "drained"
	removedDead     = "dead"
	removedOverdue  = "overdue"
	removedStuck    = "stuck"
	removedUnneeded = "unneeded"
	removedOverMax  = "over-max"
	removedEvicted  = "evicted"
	// removedMoved: the deadline of a drain is over, and Ray restarts elsewhere all that runs there. Only RayClusters
	// that opt in have such drains (heliostat.dev/consolidate).
	removedMoved = "consolidated"
	// removedGivenBack: the deadline of a worker that is given back is over, and its work may end.
	removedGivenBack = "given-back"
	// removedNoQuota: the pod waits behind Kueue's gate and gets no quota.
	removedNoQuota = "no-quota"
)

// Rules decide which workers may be taken away now.
type Rules struct {
	Drains   Drains
	Breakers observe.Breakers
	Waits    *observe.Clocks
	// TakenBack reports whether Kueue refuses a pod that waits behind its gate.
	TakenBack func(pod string) bool
	// Moved reports whether a draining worker may end with what runs on it; nil if none may.
	Moved func(observe.Member) bool
	// Settled reports whether Ray has shown what it placed on the node of a worker.
	Settled func(observe.Member) bool
	// AllocationTimeout, DeadGrace and DrainDeadline are those of controller.Config.
	AllocationTimeout, DeadGrace, DrainDeadline time.Duration
}

// Removal is one pod to name in workersToDelete now.
type Removal struct {
	// unit names what leaves as a whole: a multi-host replica, or the pod itself.
	pod, group, unit, reason string
	// always: remove the pod even if replicas are at the minimum. The operator then replaces it.
	always bool
}

// Removals returns the pods that may be named now: none of them has work. A drained node is dead, and a dead node has
// already lost its work; a pod that never joined had none; the deadline of one above a lowered maximum is over, or that
// of one whose actors Ray restarts elsewhere, as the RayCluster asks for.
func (r Rules) Removals(v observe.View, plan planner.Plan) []Removal {
	overMax := map[string]bool{}
	for _, t := range plan.Terminate {
		overMax[t.Pod] = t.Reason == "max_group" || t.Reason == "max_workers"
	}
	warm := warmGroups(plan)
	hidden := len(observe.Orphans(v.Cluster, v.State.Nodes)) > 0
	var all []Removal
	for _, m := range v.Members {
		if !m.Counted() || !observe.Deletable(v.Cluster, m.Worker) {
			continue
		}
		reason, always := r.removable(v, m, overMax[m.Pod], warm[m.Group])
		if hidden && absent(reason) {
			continue // its node may be one that matches no pod
		}
		if reason != "" {
			all = append(all, Removal{pod: m.Pod, group: m.Group, unit: unitOf(m.Group, m.Replica, m.Pod),
				reason: reason, always: always})
		}
	}
	all = wholeReplicas(v.Members, r.onlySurplus(v, wholeReplicas(v.Members, all)))
	return keepMinimum(v.Cluster, all)
}

// warmGroups returns the groups with pods that the plan keeps free. No demand asks for such pods.
func warmGroups(plan planner.Plan) map[string]bool {
	warm := map[string]bool{}
	for k := range plan.Warm {
		for group, pods := range plan.Warm[k].Pods {
			warm[group] = warm[group] || pods > 0
		}
	}
	return warm
}

// onlySurplus limits overdue workers to the surplus of their group above its maximum, without those that leave anyway:
// a deadline was set for the surplus of that time, and other workers may have become idle since.
func (r Rules) onlySurplus(v observe.View, removals []Removal) []Removal {
	if len(removals) == 0 {
		return nil
	}
	reasons := map[string]string{}
	for _, gone := range removals {
		reasons[gone.pod] = gone.reason
	}
	late := map[string]int{} // pods of each unit with an overdue host
	for _, m := range v.Members {
		if reasons[m.Pod] == removedOverdue {
			late[unitOf(m.Group, m.Replica, m.Pod)] = 0
		}
	}
	stand := map[string]int{}
	for _, m := range v.Members {
		_, isLate := late[unitOf(m.Group, m.Replica, m.Pod)]
		leaves := reasons[m.Pod] != "" || (m.Joined() && r.Drains.Leaving(m.Node.ID))
		if m.Counted() && (isLate || !leaves) {
			stand[m.Group]++
		}
		if m.Counted() && isLate {
			late[unitOf(m.Group, m.Replica, m.Pod)]++
		}
	}
	stays := map[string]bool{}
	for _, m := range v.Members {
		unit := unitOf(m.Group, m.Replica, m.Pod)
		g, known := v.Cluster.Group(m.Group)
		if late[unit] == 0 || !known {
			continue
		}
		if stays[unit] = stand[m.Group]-late[unit] < g.Max*max(1, g.NumOfHosts); !stays[unit] {
			stand[m.Group] -= late[unit]
		}
		delete(late, unit)
	}
	return slices.DeleteFunc(removals, func(gone Removal) bool { return stays[gone.unit] })
}

// absent reports whether a removal depends on no living node being in the pod. Ray, a deadline or whoever ends the pod
// allowed the others.
func absent(reason string) bool {
	return reason != removedDrained && reason != removedOverdue && reason != removedEvicted && reason != removedMoved &&
		reason != removedGivenBack
}

func (r Rules) removable(
	v observe.View, m observe.Member, overMax, warm bool,
) (reason string, always bool) {
	switch {
	case !m.Joined() && r.Drains.acceptedPod(m.Pod):
		return removedDrained, true
	case m.Dead() && r.deadForGood(m, v.Now):
		return removedDead, true
	case m.Joined() && r.Drains.overdue(m.Node.ID, v.Now) && observe.AboveMaximum(v.Cluster, v.Members, m.Group):
		return removedOverdue, true
	case m.Joined() && m.Node.Status == raydemand.Draining && r.Moved != nil && r.Moved(m):
		if v.Cluster.GiveBack.Has(m.UID) {
			return removedGivenBack, false
		}
		return removedMoved, false
	case m.Node != nil:
		return "", false
	case joining(m, v.Now, r.AllocationTimeout):
		return "", false // it is drained once it has joined
	case overMax:
		return removedOverMax, true
	case m.Gated && !observe.Placed(m) && r.TakenBack != nil && r.TakenBack(m.Pod):
		return removedNoQuota, false
	case r.Breakers.Open(m.Group, v.Now) && r.Waits.UnjoinedFor(m.Pod, v.Now) >= r.AllocationTimeout &&
		!starting(m, v.Now, r.AllocationTimeout):
		return removedStuck, false
	case !warm && r.unneeded(v, m):
		return removedUnneeded, false
	}
	return "", false
}

// deadForGood reports whether neither the pod's node, which died, nor a container restarted since has joined within
// DeadGrace.
func (r Rules) deadForGood(m observe.Member, now time.Time) bool {
	restarting := m.Running && now.Sub(m.StartedAt) < r.DeadGrace
	return r.Waits.DeadFor(m.Pod, now) >= r.DeadGrace && !restarting
}

// slowestStart is how long a pod that has a node may take to start: pulling a large image takes many minutes, and a
// replacement would start again from nothing. Meanwhile the open breaker lets other groups serve the demand.
const slowestStart = 30 * time.Minute

// starting reports whether a pod that has a node may still start: its containers are being created, or have run for a
// short time.
func starting(m observe.Member, now time.Time, allocationTimeout time.Duration) bool {
	if m.ScheduledAt.IsZero() || now.Sub(m.ScheduledAt) >= slowestStart {
		return false
	}
	return !m.Running || joining(m, now, allocationTimeout)
}

// joining reports whether Ray is being started in the pod. Ray gives work to a worker in the moment in which it joins,
// and no earlier reading can exclude that this moment lies between the last reading and the end of the pod. A drain
// can, so such a pod may join and is drained like any other. A pod whose container does not run yet is seconds away
// from joining.
func joining(m observe.Member, now time.Time, allocationTimeout time.Duration) bool {
	return m.Running && now.Sub(m.StartedAt) < allocationTimeout
}

// unneeded reports whether a pod that never joined outlived its demand: nothing at all has been requested during the
// group's idle timeout, and the pod has waited as long.
func (r Rules) unneeded(v observe.View, m observe.Member) bool {
	timeout := observe.IdleTimeout(v.Cluster, m.Group)
	return r.Waits.QuietFor(v.Now) > timeout && r.Waits.UnjoinedFor(m.Pod, v.Now) > timeout &&
		v.Now.Sub(m.CreatedAt) > timeout
}

// wholeReplicas keeps a multi-host replica's pods only if all of its hosts leave: naming one makes the operator delete
// all. It waits for a host that terminates by itself, as nodepool.Targets does.
func wholeReplicas(members []observe.Member, removals []Removal) []Removal {
	if len(removals) == 0 {
		return nil
	}
	going := map[string]bool{}
	for _, r := range removals {
		going[r.pod] = true
	}
	stays := map[string]bool{}
	for _, m := range members {
		if m.Replica != "" && !m.Named && !going[m.Pod] {
			stays[unitOf(m.Group, m.Replica, m.Pod)] = true
		}
	}
	return slices.DeleteFunc(removals, func(r Removal) bool { return stays[r.unit] })
}

// keepMinimum drops removals after which the operator would only create the pod again: whole replicas at a time.
func keepMinimum(cluster nodepool.Cluster, removals []Removal) []Removal {
	if len(removals) == 0 {
		return nil
	}
	spare := map[string]int{}
	for _, g := range cluster.Groups {
		spare[g.Name] = g.Goal() - g.Min
	}
	goes := map[string]bool{}
	admit := func(r Removal) bool {
		if !goes[r.unit] && (r.always || spare[r.group] > 0) {
			goes[r.unit] = true
			spare[r.group]--
		}
		return goes[r.unit]
	}
	var kept []Removal
	for _, always := range []bool{true, false} {
		for _, r := range removals {
			if r.always == always && admit(r) {
				kept = append(kept, r)
			}
		}
	}
	return kept
}

func PodsOf(removals []Removal) []string {
	pods := make([]string, len(removals))
	for i, r := range removals {
		pods[i] = r.pod
	}
	return pods
}
