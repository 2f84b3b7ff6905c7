package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
	var starting []observe.Member
	for _, member := range input.Members {
		if member.Node == nil {
			starting = append(starting, member)
		} else {
			m.addNode(&input, member.Node)
		}
		if member.Dead() && m.clocks.DeadFor(member.Pod, v.Now) >= s.DeadGrace {
			input.Crashed[member.Pod] = true
		}
	}
	times := func(g arrival.Group) arrival.Times { return m.starts.Times(g, s.nodeTimes) }
	input.Arrivals = observe.Arrivals(observe.Starting(v.Cluster, starting), times)
	snapshot := observe.Assemble(input)
	snapshot.Policy, snapshot.Turn = s.Policy, m.turn
	return snapshot
}

// addNode adds what is known of a node beside what Ray reports of it.
func (m *memory) addNode(input *observe.SnapshotInput, n *raydemand.Node) {
	if n.Status == raydemand.Idle {
		input.Idle[n.ID] = m.idleFor(input.Now, n)
	}
	if m.drains.Leaving(n.ID) {
		input.Leaving[n.ID] = true
	}
	if waits := m.unplaceable.Of(n, input.Now); waits != nil {
		input.Unplaceable[n.ID] = waits
	}
}
