package nodepool

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// GroupNoNode is the code of the finding that no known node could hold a pod of a group.
const GroupNoNode = "group-no-node"

// Judge sets where a pod of the group can run, at a moment; the zero moment ignores ages. Nodes of NodeClaims that are
// on their way are nodes too.
func (g *WorkerGroup) Judge(answer landing.Answer, now time.Time) {
	answer = answer.At(now)
	answer.Pods = nil
	if g.Incoming.Pods() > 0 {
		answer.State, answer.Why, answer.Beyond = landing.Fits, "", false
	}
	g.Landing = &answer
}

// JudgeUnseen sets what pools prove about the group while the nodes are unknown, and returns the finding about it as
// NoNode does. Without a proof the group is planned as if any node could hold its pods.
func (g *WorkerGroup) JudgeUnseen(pools *landing.Nodes) (raydemand.Finding, bool) {
	answer, proven := pools.Unseen(&g.Pod)
	if !proven {
		return raydemand.Finding{}, false
	}
	g.Judge(answer, time.Time{})
	return g.NoNode()
}

// MayLand reports whether the group can have pods, and fits a known node.
func (g *WorkerGroup) MayLand() bool {
	return g.Max > 0 && !g.Suspended && g.Landing != nil && g.Landing.Nodes > 0
}

// MayLandOnGPUs reports whether the group can have pods that request GPUs, and fits a known node.
func (g *WorkerGroup) MayLandOnGPUs() bool { return g.MayLand() && len(g.Slices) > 0 }

// NoNode reports that nothing shows that a node can hold a pod of the group: an error if it is proven that none ever
// will, and otherwise a warning or an information, because only one replica at a time is launched. It returns false if
// the group is not planned.
func (g *WorkerGroup) NoNode() (raydemand.Finding, bool) {
	if g.Landing == nil || g.Landing.State == landing.Fits || g.Max <= 0 || g.Suspended || g.Broken {
		return raydemand.Finding{}, false
	}
	f := raydemand.Finding{
		Code: GroupNoNode, Severity: raydemand.Error, Seen: g.Landing.Why,
		Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec", g.Index),
		Fix:   "correct requests, nodeSelector, affinity or tolerations, or add such a node",
	}
	switch g.Landing.State {
	case landing.Limited:
		f.Why = "the limits of its pools allow no node for a pod of group " + g.Name + ", so it takes no launches"
		f.Fix = "raise the limit, or choose another pool"
	case landing.Trying:
		f.Severity = raydemand.Warning
		if g.Landing.Beyond {
			f.Severity = raydemand.Info
			f.Why = "Heliostat does not compare a pod of group " + g.Name + " with pods on other nodes, so at most " +
				"one replica at a time is launched until a pod has joined"
			f.Fix = "none is needed if the pods get their nodes"
			break
		}
		f.Why = "no known node, even if it were empty, could hold a pod of group " + g.Name +
			", so at most one replica at a time is launched, in case a node autoscaler can add one that holds it"
		f.Fix = "declare the shape of the pool in the file of --pools, or in pools of a snapshot, add such a node, " +
			"or correct requests, nodeSelector, affinity or tolerations"
	case landing.Waiting:
		f.Severity = raydemand.Warning
		f.Why = "the nodes that could hold pods of group " + g.Name +
			" are not ready, so it launches no more than these nodes hold, and the pods wait until one is ready"
		f.Fix = "repair or replace the node, or raise the limit of its pool"
	default:
		f.Why = "it is proven that no node can hold a pod of group " + g.Name + ", so it takes no launches"
	}
	return f, true
}
