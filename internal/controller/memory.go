package controller

import (
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// memory is what is remembered of one RayCluster, and not of an earlier one with the same name.
type memory struct {
	// Patches are those of this process. The loop writes them, and says how that ended.
	Patches patches

	session
	breakers observe.Breakers
	refusals observe.QuotaRefusals
	reported reportedStatuses
	guard    scaledown.DropGuard
	// shapes outlive the nodes they were learned from, so that a group scaled to zero keeps its real shape.
	shapes   observe.Shapes
	movement movement
	// freshRest is the pause after a reading from the API server before a reduction that failed, with freshErr.
	freshRest addon.Pause
	freshErr  error
	// turn is where the next plan continues among demand that was too much for the last one.
	turn string
}

// session is what the readings of one Ray session add up to. The drop guard is no part of it: it must notice that the
// nodes are gone when the session is over.
type session struct {
	clock       observe.NodeClocks
	lag         observe.PlacementLag
	gangs       observe.Gangs
	clocks      observe.Clocks
	unplaceable observe.Unplaceable
	shortage    observe.Shortages
	drains      scaledown.Drains
	// launching is since when each group has pods that do not exist yet.
	launching map[string]time.Time
	// nodes are the nodes that Ray last reported.
	nodes []raydemand.Node
}

// newMemory returns the memory of a RayCluster that this process has not seen yet.
func newMemory() memory {
	return memory{session: newSession(), breakers: observe.Breakers{}, shapes: observe.Shapes{}}
}

func newSession() session { return session{drains: scaledown.Drains{}} }

// Remember adds a view to the memory, before anything is decided from it. It completes the view: Demand is Ray's demand
// less what was just placed, and Reverted says what became of the last patch. It returns which groups the RayCluster no
// longer has if it has just forgotten some, so that the loop forgets them too; otherwise nil.
func (m *memory) Remember(v *observe.View, s *Config) (gone func(group string) bool) {
	v.Reverted = m.Patches.reverts.Observe(v.Now, &v.Cluster)
	if !v.Live() {
		m.drains.KeepDeadlines(*v, s.DrainDeadline)
		m.clocks.Pause()
		m.unplaceable = observe.Unplaceable{}
		m.breakers.Pause(v.Now)
		m.shortage = observe.Shortages{}
		return nil
	}
	m.nodes = v.State.Nodes
	m.clock.Observe(v.Now, v.State.Nodes, observe.JobsRestartIdleTimes(v.Cluster.RayVersion))
	v.Demand = v.State.Demand
	v.Demand.Requests = m.lag.Correct(v.Now, v.State)
	m.gangs.Observe(v.Now, v.State.Demand.Gangs)
	m.unplaceable.Observe(v.Now, v.State.Nodes, v.Demand)
	m.drains.Observe(v.Now, v.State.Nodes, s.DrainTimeout)
	m.drains.KeepDeadlines(*v, s.DrainDeadline)
	m.clocks.Observe(v.Now, v.Members, v.State.Demand,
		len(v.Cluster.RequestResources)+len(countedRequests(&v.Cluster, m.reported, v.Now)) > 0)
	proofs := m.shortage.Observe(v.Now, v.Cluster, v.Members, s.AllocationTimeout/5)
	m.breakers.Observe(v.Now, v.Cluster, v.Members, proofs, s.AllocationTimeout, s.BreakerCooldown)
	m.refusals.Observe(v.Now, v.Cluster, v.Members)
	m.guard.Observe(v.Now, v.Cluster, v.Members, v.State.Nodes, m.drains.Leaving)
	m.drains.Prune(v.Members)
	m.shapes.Observe(v.Cluster, v.Members)
	m.movement.Observe(v.Now, v.State.Demand, v.Members)
	return m.forgetFormerGroups(v)
}

// RememberFresh adds the RayCluster that was read again from the API server in the same cycle, as the view now has it.
// forGuard: it was read because the drop guard wants to see the list twice.
func (m *memory) RememberFresh(v *observe.View, s *Config, forGuard bool) {
	v.Reverted = m.Patches.reverts.Observe(v.Now, &v.Cluster) || v.Reverted
	m.drains.KeepDeadlines(*v, s.DrainDeadline)
	m.guard.Observe(v.Now, v.Cluster, v.Members, v.State.Nodes, m.drains.Leaving)
	m.refusals.Observe(v.Now, v.Cluster, v.Members)
	if forGuard && m.guard.WantsFreshList(v.Now) {
		m.guard.NoteFreshList(v.Now)
	}
}

// Glance adds a reading between two cycles. same: it repeats the last one in all but idle times. The last decision
// rests on a RayCluster with this version of Ray.
func (m *memory) Glance(now time.Time, nodes []raydemand.Node, same bool, rayVersion string) {
	if defect := observe.JobsRestartIdleTimes(rayVersion); same && !defect {
		m.clock.Repeat(now)
	} else {
		m.clock.Observe(now, nodes, defect)
	}
}

// forgetFormerGroups forgets groups that the RayCluster no longer has and that have no pods: otherwise, a group that is
// renamed again and again would take more memory each time. The shapes have an entry for each group.
func (m *memory) forgetFormerGroups(v *observe.View) (gone func(group string) bool) {
	if len(m.shapes) <= len(v.Cluster.Groups) {
		return nil
	}
	exists := make(map[string]bool, len(v.Cluster.Groups))
	for i := range v.Cluster.Groups {
		exists[v.Cluster.Groups[i].Name] = true
	}
	for i := range v.Members {
		exists[v.Members[i].Group] = true
	}
	gone = func(group string) bool { return !exists[group] }
	m.shapes.Forget(gone)
	maps.DeleteFunc(m.breakers, func(group string, _ *observe.Breaker) bool { return gone(group) })
	m.refusals.Forget(gone)
	m.Patches.reverts.Forget(gone)
	return gone
}

// Findings returns what the memory shows of the RayCluster's own faults.
func (m *memory) Findings(v *observe.View) []raydemand.Finding {
	return slices.Concat(m.shapes.Findings(v.Cluster), m.Patches.reverts.Findings(v.Now, &v.Cluster))
}

// snapshot returns the planner's snapshot of a view; warm is what the capacity policy wants free.
func (m *memory) snapshot(v observe.View, s *Config, warm *planner.Warm) planner.Snapshot {
	input := observe.SnapshotInput{
		Now: v.Now, Cluster: v.Cluster, Members: v.Members, Head: v.Head, Demand: v.Demand,
		Idle:        make(map[raydemand.NodeID]time.Duration, len(v.Members)),
		Leaving:     map[raydemand.NodeID]bool{},
		Unplaceable: map[raydemand.NodeID]raydemand.Bundle{},
		Crashed:     map[string]bool{},
		Breakers:    m.breakers,
		NodeComing:  m.shortage.Coming,
		Since:       m.launching,
		Shapes:      m.shapes,
		Quotas:      m.refusals.Bounds(v.Now),
		TakenBack:   m.refusals.TakenBack,
		Warm:        warm,
	}
	if v.Live() {
		input.PlainRequests = v.Cluster.RequestResources
		input.OwnedRequests = countedRequests(&v.Cluster, m.reported, v.Now)
	} else {
		input.DemandUnknown, input.Members = v.DemandUnknown, observe.Join(v.Cluster, m.nodes)
	}
	if input.Head != nil {
		input.Unplaceable[input.Head.ID] = m.unplaceable.Of(input.Head, v.Now)
	}
	for _, member := range input.Members {
		if n := member.Node; n != nil {
			if n.Status == raydemand.Idle {
				input.Idle[n.ID] = m.clock.IdleFor(v.Now, n)
			}
			if m.drains.Leaving(n.ID) {
				input.Leaving[n.ID] = true
			}
			if waits := m.unplaceable.Of(n, v.Now); waits != nil {
				input.Unplaceable[n.ID] = waits
			}
		}
		if member.Dead() && m.clocks.DeadFor(member.Pod, v.Now) >= s.DeadGrace {
			input.Crashed[member.Pod] = true
		}
	}
	snapshot := observe.Assemble(input)
	snapshot.Policy, snapshot.Turn = s.Policy, m.turn
	return snapshot
}
