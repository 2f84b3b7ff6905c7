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

// Motion returns how much the RayCluster moves.
func (m *memory) Motion(v *observe.View, i *addon.Intent) motion {
	switch {
	case !v.Live():
		return idle
	case i.Plan.Deferred != nil: // the next plan continues with it
		return active
	case m.movement.Settled(v.Now):
		return idle
	case m.moves(v, i):
		return active
	case v.Now.Before(m.movement.SettlesAt()):
		return settling
	}
	return idle
}

// moves reports whether anything moves that the next reading may complete.
func (m *memory) moves(v *observe.View, i *addon.Intent) bool {
	demand := v.State.Demand
	return len(demand.Requests)+len(demand.Gangs) > 0 || m.lag.Active() || m.drains.Open() > 0 ||
		len(i.Launch) > 0 || i.Any() || m.guard.Doubts() ||
		slices.ContainsFunc(i.Snapshot.Nodes, func(n planner.Node) bool {
			return n.State == planner.Pending || n.State == planner.Leaving
		}) ||
		slices.ContainsFunc(v.Members,
			func(m observe.Member) bool { return m.Joined() && m.Node.Status == raydemand.Draining })
}

// AtRest reports whether only a change, or one of the deadlines of untilDeadline, can lead to another decision than
// this one, as far as the memory knows. What is not known to be at rest is not.
func (m *memory) AtRest(v *observe.View, i *addon.Intent) bool {
	plan, demand := &i.Plan, &v.State.Demand
	return len(demand.Requests)+len(demand.Gangs) == 0 &&
		len(plan.Launch)+len(i.Launch)+len(i.Held) == 0 &&
		!i.Any() &&
		m.Patches.unwritten == nil && !m.fresh.rest.Resting(v.Now) &&
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

// settleTime is how long a cluster counts as moving after its last change, so that an unschedulable pod or demand that
// no group can serve does not keep the loop fast for ever. If nothing is open, it counts as settling for so long.
const settleTime = 30 * time.Second

// movement remembers when the demand or the pods of one RayCluster last changed.
type movement struct {
	demand  raydemand.Demand
	pods    []podStatus
	movedAt time.Time
	// changed: movedAt is the time of a change, and not of the first reading.
	changed bool
}

// podStatus is where a pod stands.
type podStatus struct{ pod, status string }

// Observe notes the demand and the pods of a reading. The pods are in the same order each time.
func (m *movement) Observe(now time.Time, demand raydemand.Demand, members []observe.Member) {
	moved := m.movedAt.IsZero() || len(members) != len(m.pods) || !reflect.DeepEqual(demand, m.demand)
	for i := range members {
		moved = moved || m.pods[i] != podStatusOf(members[i])
	}
	if !moved {
		return
	}
	m.changed = !m.movedAt.IsZero()
	m.demand, m.movedAt, m.pods = demand, now, make([]podStatus, len(members))
	for i := range members {
		m.pods[i] = podStatusOf(members[i])
	}
}

func podStatusOf(member observe.Member) podStatus { return podStatus{member.Pod, status(member)} }

func status(member observe.Member) string {
	text := "unjoined"
	if member.Node != nil {
		text = string(member.Node.Status)
	}
	switch {
	case member.Terminating:
		return "terminating"
	case member.Goes():
		return text + ", going"
	}
	return text
}

// SettlesAt returns until when the cluster counts as settling after its last change; zero if no change was seen.
func (m *movement) SettlesAt() time.Time {
	if !m.changed {
		return time.Time{}
	}
	return m.movedAt.Add(settleTime)
}

// Settled reports whether nothing has changed for so long that the cluster counts as resting, whatever is still open.
func (m *movement) Settled(now time.Time) bool { return now.Sub(m.movedAt) > settleTime }
