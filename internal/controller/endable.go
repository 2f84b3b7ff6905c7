package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// endable are the draining workers that may end with the restartable actors on them, as of this cycle.
type endable struct {
	looked time.Time
	nodes  map[raydemand.NodeID]bool
	// since is since when the RayCluster lets them end without interruption; zero if it does not.
	since time.Time
}

// in returns the rule for a RayCluster: only one that opts in has such workers.
func (e *endable) in(cluster *nodepool.Cluster) func(observe.Member) bool {
	opted, nodes := cluster.Consolidate.Allows(nodepool.ConsolidateRestartable), e.nodes
	return func(m observe.Member) bool { return opted && nodes[m.Node.ID] }
}

// OverdueDrains returns the draining workers whose deadline is over, if their actors are to be read in this cycle:
// the RayCluster lets restartable actors move, and the last look was not just now. Until EndWith, none may end. After
// a restart of this process, and after the RayCluster has opted in or is managed again, a drain has its whole time
// again.
func (m *memory) OverdueDrains(v *observe.View, deadline time.Duration) []observe.Member {
	const lookAgain = 5 * time.Second
	e := &m.endable
	e.nodes = nil
	switch {
	case v.Mode != nodepool.Managed || !v.Cluster.Consolidate.Allows(nodepool.ConsolidateRestartable):
		e.since = time.Time{}
		return nil
	case e.since.IsZero():
		e.since = v.Now
	}
	if !v.Live() || v.Now.Sub(e.looked) < lookAgain || v.Now.Sub(e.since) < deadline {
		return nil
	}
	var due []observe.Member
	for _, member := range v.Members {
		if member.Joined() && member.Node.Status == raydemand.Draining && member.Counted() && member.Going == nil &&
			m.drains.AcceptedFor(member.Node.ID, v.Now) >= deadline {
			due = append(due, member)
		}
	}
	return due
}

// LooksAtActors notes that the actors on overdue drains are read in the cycle of this time.
func (m *memory) LooksAtActors(now time.Time) { m.endable.looked = now }

// EndWith lets the workers of these nodes end in this cycle, with the restartable actors on them.
func (m *memory) EndWith(nodes map[raydemand.NodeID]bool) { m.endable.nodes = nodes }
