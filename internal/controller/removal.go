package controller

import (
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Why a pod goes by name: stable codes of log lines and Events.
const (
	removedDrained  = "drained"
	removedDead     = "dead"
	removedOverdue  = "overdue"
	removedStuck    = "stuck"
	removedUnneeded = "unneeded"
	removedOverMax  = "over-max"
)

// reductionRules decide which workers may be taken away now.
type reductionRules struct {
	drains   drains
	breakers breakers
	waits    *waits
	// allocationTimeout, deadGrace and drainDeadline are those of Config.
	allocationTimeout, deadGrace, drainDeadline time.Duration
}

// removal is one pod that goes by name now.
type removal struct {
	pod, group, reason string
	// always: the pod goes even where replicas are at the minimum. A dead one is then replaced by the operator.
	always bool
}

// removals lists the pods that may go by name now: none of them has work. A drained node is dead, and a dead one has lost
// its work already; a pod that never joined had none; one above a lowered maximum has had its deadline.
func (r reductionRules) removals(v view, plan planner.Plan) []removal {
	overMax := map[string]bool{}
	for _, t := range plan.Terminate {
		overMax[t.Pod] = t.Reason == "max_group" || t.Reason == "max_workers"
	}
	hidden := len(membership.Orphans(v.cluster, v.state.Nodes)) > 0
	var all []removal
	for _, m := range v.members {
		if !m.Counted() || !membership.Deletable(v.cluster, m.Worker) {
			continue
		}
		reason, always := r.removable(v, m, overMax[m.Pod])
		if hidden && absent(reason) {
			continue // its node may be one that is found in no pod
		}
		if reason != "" {
			all = append(all, removal{pod: m.Pod, group: m.Group, reason: reason, always: always})
		}
	}
	all = wholeReplicas(v.members, r.onlySurplus(v, wholeReplicas(v.members, all)))
	return keepMinimum(v.cluster, v.members, all)
}

// onlySurplus lets overdue workers go only as far as their group is above its maximum without those that leave anyway: a
// deadline was set for what was surplus then, and others may have become idle since.
func (r reductionRules) onlySurplus(v view, removals []removal) []removal {
	reasons, units := map[string]string{}, map[string]string{}
	for _, gone := range removals {
		reasons[gone.pod] = gone.reason
	}
	late := map[string]int{} // pods of each unit with an overdue host
	for _, m := range v.members {
		units[m.Pod] = m.Group + " " + unitOf(m.Replica, m.Pod)
		if reasons[m.Pod] == removedOverdue {
			late[units[m.Pod]] = 0
		}
	}
	stand := map[string]int{}
	for _, m := range v.members {
		_, isLate := late[units[m.Pod]]
		leaves := reasons[m.Pod] != "" || (m.Joined() && r.drains.leaving(m.Node.ID))
		if m.Counted() && (isLate || !leaves) {
			stand[m.Group]++
		}
		if m.Counted() && isLate {
			late[units[m.Pod]]++
		}
	}
	stays := map[string]bool{}
	for _, m := range v.members {
		unit := units[m.Pod]
		g, known := v.cluster.Group(m.Group)
		if late[unit] == 0 || !known {
			continue
		}
		if stays[unit] = stand[m.Group]-late[unit] < g.Max*max(1, g.NumOfHosts); !stays[unit] {
			stand[m.Group] -= late[unit]
		}
		delete(late, unit)
	}
	return slices.DeleteFunc(removals, func(gone removal) bool { return stays[units[gone.pod]] })
}

// absent reports whether a removal rests on no living node being in the pod. The others were agreed to, by Ray or by a
// deadline.
func absent(reason string) bool { return reason != removedDrained && reason != removedOverdue }

func (r reductionRules) removable(v view, m membership.Member, overMax bool) (reason string, always bool) {
	switch {
	case !m.Joined() && r.drains.acceptedPod(m.Pod):
		return removedDrained, true
	case m.Dead() && r.deadForGood(m, v.now):
		return removedDead, true
	case m.Joined() && r.drains.overdue(m.Node.ID, v.now) && membership.AboveMaximum(v.cluster, v.members, m.Group):
		return removedOverdue, true
	case m.Node != nil:
		return "", false
	case joining(m, v.now, r.allocationTimeout):
		return "", false // it goes the usual way once it has joined
	case overMax:
		return removedOverMax, true
	case r.breakers.open(m.Group, v.now) && r.waits.unjoinedFor(m.Pod, v.now) >= r.allocationTimeout && !starting(m, v.now, r.allocationTimeout):
		return removedStuck, false
	case r.unneeded(v, m):
		return removedUnneeded, false
	}
	return "", false
}

// deadForGood reports whether neither the pod's node, which died, nor a container started anew since has come to life
// within DeadGrace.
func (r reductionRules) deadForGood(m membership.Member, now time.Time) bool {
	restarting := m.Running && now.Sub(m.StartedAt) < r.deadGrace
	return r.waits.deadFor(m.Pod, now) >= r.deadGrace && !restarting
}

// slowestStart is how long a pod that has a node may take to start: pulling a large image takes many minutes, and a
// replacement would begin anew. Meanwhile the open breaker lets other groups serve the demand.
const slowestStart = 30 * time.Minute

// starting reports whether a pod that has a node may still come up: its containers are being made, or run since lately.
func starting(m membership.Member, now time.Time, allocationTimeout time.Duration) bool {
	if m.ScheduledAt.IsZero() || now.Sub(m.ScheduledAt) >= slowestStart {
		return false
	}
	return !m.Running || joining(m, now, allocationTimeout)
}

// joining reports whether Ray is being started in the pod. Ray gives work to a worker in the moment in which it joins, and
// nothing that was read before can rule that moment out between the last look and the pod's end. A drain can, so such a
// pod is let join and is drained like any other. A pod whose container does not run yet is seconds away from joining.
func joining(m membership.Member, now time.Time, allocationTimeout time.Duration) bool {
	return m.Running && now.Sub(m.StartedAt) < allocationTimeout
}

// unneeded reports whether a pod that never joined outlived the demand it was made for: nothing at all has been asked
// for during the group's idle timeout, and the pod has waited as long.
func (r reductionRules) unneeded(v view, m membership.Member) bool {
	timeout := membership.IdleTimeout(v.cluster, m.Group)
	return r.waits.quietFor(v.now) > timeout && r.waits.unjoinedFor(m.Pod, v.now) > timeout && v.now.Sub(m.CreatedAt) > timeout
}

// wholeReplicas keeps a multi-host replica's pods only when all of its hosts go: naming one makes the operator delete all.
// A host that is ending by itself is waited for, as nodepool.Targets does.
func wholeReplicas(members []membership.Member, removals []removal) []removal {
	going := map[string]bool{}
	for _, r := range removals {
		going[r.pod] = true
	}
	stays := map[string]bool{}
	replicaOf := map[string]string{}
	for _, m := range members {
		replicaOf[m.Pod] = m.Replica
		if m.Replica != "" && !m.Named && !going[m.Pod] {
			stays[m.Replica] = true
		}
	}
	var whole []removal
	for _, r := range removals {
		if replica := replicaOf[r.pod]; replica == "" || !stays[replica] {
			whole = append(whole, r)
		}
	}
	return whole
}

// keepMinimum drops removals that would only make the operator create the pod anew: whole replicas at a time.
func keepMinimum(cluster nodepool.Cluster, members []membership.Member, removals []removal) []removal {
	spare, replicaOf := map[string]int{}, map[string]string{}
	for _, g := range cluster.Groups {
		spare[g.Name] = g.Goal() - g.Min
	}
	for _, m := range members {
		replicaOf[m.Pod] = m.Replica
	}
	goes := map[string]bool{}
	admit := func(r removal) bool {
		unit := r.group + "/" + r.pod
		if replica := replicaOf[r.pod]; replica != "" {
			unit = r.group + "/" + replica
		}
		if !goes[unit] && (r.always || spare[r.group] > 0) {
			goes[unit] = true
			spare[r.group]--
		}
		return goes[unit]
	}
	var kept []removal
	for _, always := range []bool{true, false} {
		for _, r := range removals {
			if r.always == always && admit(r) {
				kept = append(kept, r)
			}
		}
	}
	return kept
}

// wish is one drain that shall be asked.
type wish struct {
	node     raydemand.Node
	pod      string
	group    string
	replica  string
	reason   raydemand.DrainReason
	deadline time.Time
	message  string
}

// wishes lists the drains that the plan's terminations call for. An idle drain is asked only of a node that this very
// reading shows IDLE; a busy node is drained, with a deadline, only above a lowered maximum.
func (r reductionRules) wishes(v view, plan planner.Plan) []wish {
	byPod := make(map[string]membership.Member, len(v.members))
	for _, m := range v.members {
		byPod[m.Pod] = m
	}
	var all []wish
	for _, t := range plan.Terminate {
		m, known := byPod[t.Pod]
		if !known || !m.Counted() || !m.Joined() || !membership.Deletable(v.cluster, m.Worker) || !r.drains.mayAsk(m.Node.ID, v.now) {
			continue
		}
		w := wish{node: *m.Node, pod: m.Pod, group: m.Group, replica: m.Replica}
		switch {
		case m.Node.Status == raydemand.Idle:
			w.reason = raydemand.DrainIdle
			w.message = "Heliostat: " + t.Message
		case t.Busy && m.Node.Status == raydemand.Running && membership.AboveMaximum(v.cluster, v.members, m.Group):
			w.reason, w.deadline = raydemand.DrainPreemption, v.now.Add(r.drainDeadline)
			w.message = fmt.Sprintf("Heliostat: group %s is above its maximum", m.Group)
		default:
			continue
		}
		all = append(all, w)
	}
	return all
}
