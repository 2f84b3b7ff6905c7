package model

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// NodeFit says that no known node could hold a pod of a group now, and what that proves. A group without one fits
// somewhere, or its nodes are unknown. A group that is landing.Trying launches one replica at a time, in case a node
// autoscaler knows more.
type NodeFit struct {
	Verdict landing.State `json:"verdict"`
	// Why is the reason of the nearest node or pool.
	Why string `json:"why"`
}

// fitOf returns nil if the group fits somewhere, or if nodes are unknown.
func fitOf(g nodepool.WorkerGroup) *NodeFit {
	if g.Landing == nil || g.Landing.State == landing.Fits || g.Landing.State == "" {
		return nil
	}
	return &NodeFit{g.Landing.State, g.Landing.Why}
}

// Excluded reports whether it is proven that no pod of the group can run. Its pods on their way serve nothing.
func (g *Group) Excluded() bool {
	return g.NodeFit != nil && g.NodeFit.Verdict != landing.Trying && !g.Waiting()
}

// Waiting reports whether pods of the group could only run on nodes that are not ready.
func (g *Group) Waiting() bool { return g.NodeFit != nil && g.NodeFit.Verdict == landing.Waiting }

// Hopeless reports whether it is proven that no node will ever hold a pod of the group, whatever its limits.
func (g *Group) Hopeless() bool { return g.NodeFit != nil && g.NodeFit.Verdict == landing.Nowhere }
