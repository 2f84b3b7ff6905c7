package model

import "heliostat.dev/heliostat/pkg/nodepool"

// NodeFit says that no known node could hold a pod of a group now, and what that proves. A group without one fits
// somewhere, or its nodes are unknown.
type NodeFit struct {
	Verdict FitVerdict `json:"verdict"`
	// Why is the reason of the nearest node or pool.
	Why string `json:"why"`
}

// FitVerdict is what is proven about a group's pods.
type FitVerdict string

const (
	// FitTrying: nothing is proven, so one replica at a time is launched, in case a node autoscaler knows more.
	FitTrying FitVerdict = "trying"
	// FitNowhere: no node will ever hold a pod.
	FitNowhere FitVerdict = "nowhere"
	// FitLimited: the limit of a pool allows no node that could hold a pod.
	FitLimited FitVerdict = "limited"
	// FitWaiting: nodes that are not ready could hold pods, and their pools may add none.
	FitWaiting FitVerdict = "waiting"
)

// fitOf returns nil if the group fits somewhere, or if nodes are unknown.
func fitOf(g nodepool.WorkerGroup) *NodeFit {
	if g.Landing == nil {
		return nil
	}
	switch verdict := FitVerdict(g.Landing.State); verdict {
	case FitTrying, FitNowhere, FitLimited, FitWaiting:
		return &NodeFit{verdict, g.Landing.Why}
	}
	return nil
}

// Excluded reports whether it is proven that no pod of the group can run. Its pods on their way serve nothing.
func (g *Group) Excluded() bool {
	return g.NodeFit != nil && g.NodeFit.Verdict != FitTrying && !g.Waiting()
}

// Waiting reports whether pods of the group could only run on nodes that are not ready.
func (g *Group) Waiting() bool { return g.NodeFit != nil && g.NodeFit.Verdict == FitWaiting }

// Hopeless reports whether it is proven that no node will ever hold a pod of the group, whatever its limits.
func (g *Group) Hopeless() bool { return g.NodeFit != nil && g.NodeFit.Verdict == FitNowhere }
