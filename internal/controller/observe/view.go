// Package observe is one RayCluster as the loop sees it. It must not call anything or decide what happens to a pod: it
// takes readings in and returns values. What it remembers may be lost at any time.
//
// A View is what one cycle has read. Its Members are the worker pods, each with the node that Ray reports for it.
// Readings add up: clocks (since when a node is idle or in use, a pod is without a node), PlacementLag and Gangs (work
// that reports do not show yet), Shapes (Ray resources of new pods), Breakers and Shortages (groups whose pods do not
// join Ray), QuotaRefusals (what Kueue refuses), and Reverts (another field manager sets replicas back). A Snapshot for
// the planner is made of all of it.
package observe

import (
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// View is what one cycle observed of one cluster.
type View struct {
	Now time.Time
	// ObserveTook is how long reading took, and PlanTook how long planning did.
	ObserveTook, PlanTook time.Duration

	Cluster nodepool.Cluster
	Members []Member
	Mode    nodepool.Mode
	Why     planner.Reason
	// State is valid if StateErr is nil; Demand is its demand less what was just placed.
	State    raydemand.State
	StateErr error
	// DemandUnknown says why the demand is unknown; empty if StateErr is nil.
	DemandUnknown string
	ReadAt        time.Time
	Head          *raydemand.Node
	Demand        raydemand.Demand
	// Restartable are the draining nodes on which nothing runs but actors that Ray restarts elsewhere, as far as is
	// known.
	Restartable map[raydemand.NodeID]bool
	// Reverted: another field manager changed replicas since this process wrote them.
	Reverted bool
}

// Live reports whether the GCS answered in this cycle.
func (v View) Live() bool { return v.StateErr == nil }

// GoalPods returns how many pods the operator keeps for the group: replicas within its bounds, times hosts.
func GoalPods(group nodepool.WorkerGroup) int {
	return group.Goal() * max(1, group.NumOfHosts)
}

// Deletable reports whether the operator would delete the pod if workersToDelete named it. If not, its node is not
// drained either. In a multi-host group the operator ignores a pod without a replica label, such as one from before
// numOfHosts was raised.
func Deletable(cluster nodepool.Cluster, w *nodepool.Worker) bool {
	g, known := cluster.Group(w.Group)
	return known && Reconciled(cluster, w.Group) && (g.NumOfHosts <= 1 || w.Replica != "")
}

// Reconciled reports whether the operator reconciles the group: creates its missing pods, deletes its named ones.
func Reconciled(cluster nodepool.Cluster, group string) bool {
	g, known := cluster.Group(group)
	return known && !g.Broken && !g.Suspended && !cluster.Refused
}

// AboveMaximum reports whether more pods of the group exist than its maximum allows.
func AboveMaximum(cluster nodepool.Cluster, members []Member, group string) bool {
	g, known := cluster.Group(group)
	if !known {
		return false
	}
	pods := 0
	for _, m := range members {
		if m.Group == group && m.Counted() {
			pods++
		}
	}
	return pods > g.Max*max(1, g.NumOfHosts)
}

func IdleTimeout(cluster nodepool.Cluster, group string) time.Duration {
	if g, known := cluster.Group(group); known && g.IdleTimeout != nil {
		return *g.IdleTimeout
	}
	return cluster.IdleTimeout
}
