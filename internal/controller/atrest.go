package controller

import (
	"reflect"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// AtRest reports whether only a change, or one of the deadlines of untilDeadline, can lead to another decision than
// this one, as far as the memory knows. What is not known to be at rest is not.
func (m *memory) AtRest(v *observe.View, i *addon.Intent) bool {
	plan, demand := &i.Plan, &v.State.Demand
	return len(demand.Requests)+len(demand.Gangs) == 0 &&
		len(plan.Launch)+len(i.Launch)+len(i.Held) == 0 &&
		!i.Any() &&
		m.Patches.unwritten == nil && !m.freshRest.Resting(v.Now) &&
		len(plan.InfeasibleRequests)+len(plan.InfeasibleGangRequests)+len(plan.InfeasibleRequestResources) == 0 &&
		!m.lag.Active() && !m.guard.Doubts() && len(m.drains) == 0 && len(m.Patches.named) == 0 &&
		m.Patches.reverts.Pause(v.Now) == "" && len(m.refusals.Bounds(v.Now)) == 0 &&
		v.Cluster.Unknown() == "" && v.Cluster.Writable() == nil &&
		!slices.ContainsFunc(plan.Groups, func(g planner.GroupPlan) bool { return g.Desired != g.Current }) &&
		!slices.ContainsFunc(i.Snapshot.Groups, func(g planner.Group) bool { return g.Closed != "" }) &&
		!slices.ContainsFunc(i.Snapshot.Nodes, func(n planner.Node) bool {
			return n.State != planner.Running && n.State != planner.Idle
		}) &&
		!slices.ContainsFunc(v.Members, func(m observe.Member) bool {
			return !m.Joined() || !m.Counted() || m.Going != nil || m.Node.Status == raydemand.Draining
		})
}

// untilDeadline returns how long it takes until a worker has been idle for longer than its timeout, or a lease is over.
func untilDeadline(v *observe.View, i *addon.Intent) time.Duration {
	const never, over = time.Hour, time.Millisecond // the longest, and what makes a time longer than its limit
	next := never
	sooner := func(left time.Duration) {
		if left >= 0 {
			next = min(next, left+over)
		}
	}
	timeouts := map[string]time.Duration{}
	for k := range v.Cluster.Groups {
		name := v.Cluster.Groups[k].Name
		timeouts[name] = observe.IdleTimeout(v.Cluster, name)
	}
	for k := range i.Snapshot.Nodes {
		n := &i.Snapshot.Nodes[k]
		if n.State == planner.Idle {
			sooner(timeouts[n.Group] - time.Duration(n.IdleSeconds*float64(time.Second)))
		}
	}
	for k := range v.Cluster.Owned {
		if ends := v.Cluster.Owned[k].ExpiresAt(); !ends.IsZero() {
			sooner(ends.Sub(v.Now))
		}
	}
	return next
}

// settleTime is how long a RayCluster is active after a change: new work often follows work that has just ended. An
// unschedulable pod, or demand that no group can serve, does not keep the loop fast for longer.
const settleTime = 30 * time.Second

// movement remembers when the demand or the pods of one RayCluster last changed.
type movement struct {
	demand  raydemand.Demand
	pods    []podStatus // nil before the first reading
	movedAt time.Time
}

type podStatus struct{ pod, status string }

// Observe notes the demand and the pods of a reading. The pods are in the same order each time. The first reading is a
// change if anything is requested.
func (m *movement) Observe(now time.Time, demand raydemand.Demand, members []observe.Member) {
	pods := make([]podStatus, len(members))
	for i := range members {
		pods[i] = podStatusOf(members[i])
	}
	first := m.pods == nil
	if !first && slices.Equal(pods, m.pods) && reflect.DeepEqual(demand, m.demand) {
		return
	}
	if !first || len(demand.Requests)+len(demand.Gangs) > 0 {
		m.movedAt = now
	}
	m.demand, m.pods = demand, pods
}

// Recent reports whether something has changed lately.
func (m *movement) Recent(now time.Time) bool { return now.Sub(m.movedAt) <= settleTime }

func podStatusOf(member observe.Member) podStatus {
	status := "unjoined"
	if member.Node != nil {
		status = string(member.Node.Status)
	}
	switch {
	case member.Terminating:
		status = "terminating"
	case member.Goes():
		status += ", going"
	}
	return podStatus{member.Pod, status}
}
