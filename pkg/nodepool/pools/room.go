package pools

import (
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// Room is a pool of nodes and what its own autoscaler may still add to it. What is not known is nil, and means that it
// may: a pending pod can still wake the pool.
type Room struct {
	// Pool is its name; empty for all nodes that no label assigns to a pool.
	Pool string `json:"name"`
	// Source is who says how far it may grow: cluster-autoscaler, karpenter or configuration; empty where nobody does.
	Source string `json:"source,omitempty"`
	// Nodes are those that are there. Cordoned ones and ones that are not ready count too, as they do for the
	// autoscaler of the pool; nodes that it asked for and that have not registered do not, so that a pod which waits
	// for one is not counted a second time by its node.
	Nodes    int64  `json:"nodes"`
	MinNodes *int64 `json:"minNodes"`
	MaxNodes *int64 `json:"maxNodes"`
	// MayAddNodes is MaxNodes less Nodes, never below 0.
	MayAddNodes *int64 `json:"mayAddNodes"`
	// Limits bound what all nodes of the pool have together (Karpenter); Used is the capacity of Nodes in the resources
	// that are limited.
	Limits podfit.Quantities `json:"limits,omitempty"`
	Used   podfit.Quantities `json:"used,omitempty"`
	// Mixed says that nodes which are added may be of other sizes than those that are there, as Karpenter's are.
	Mixed bool `json:"mixed,omitempty"`
	// Template is what every node that is added will be, where that is told.
	Template *NodeTemplate `json:"-"`
}

// Pods is how many pods of one worker group a pool holds, and how many more it could. All but Bound are numbers for
// empty nodes, so they are what the group can have there in total, and no pod counts twice, whether it runs, is
// pending, or is yet to be created.
type Pods struct {
	Pool string `json:"pool"`
	// PerNode is how many an empty node of the pool holds, by its largest node or its declared shape: requests against
	// what the node announces for pods, and parts of cards card by card. What DaemonSets take is not known. 0: there is
	// neither a node nor a shape to tell.
	PerNode int64 `json:"perNode"`
	// Holds is how many all nodes that are there would hold, were they empty and had they come up; nodes that are
	// cordoned hold what of the group is bound to them.
	Holds int64 `json:"holds"`
	// Bound are the pods of this group that are bound to a node of the pool and neither failed nor leaving.
	Bound int64 `json:"bound"`
	// MayAddNodes is the pool's; MayAddPods is how many nodes that may still be added would hold together. nil:
	// unknown, so it may add.
	MayAddNodes *int64 `json:"mayAddNodes"`
	MayAddPods  *int64 `json:"mayAddPods"`
	// Has is what all nodes of the pool, those that are there and those that may be added, have of each resource that a
	// pod takes, as if they had come up; resources that nothing bounds are not in it.
	Has podfit.Quantities `json:"has,omitempty"`
	// Cards are those of the nodes that could hold a pod of the group, of known product and cut.
	Cards []nodegpu.CutCards `json:"cards,omitempty"`
	// Provisioned: Karpenter adds nodes to the pool, of any size that its NodePool allows.
	Provisioned bool `json:"provisioned,omitempty"`
	// ProfileFixed: the pool's MIG profile was chosen when it was made and cannot be changed, as on AKS.
	ProfileFixed bool `json:"profileFixed,omitempty"`
}

// Most is how many pods of the group the pool can have in total, those that it has counted in; false where nothing
// bounds it.
func (p Pods) Most() (pods int64, bounded bool) {
	if p.MayAddPods == nil {
		return 0, false
	}
	// A pod that is there has its place, whatever was read of its node since.
	return max(p.Holds, p.Bound) + *p.MayAddPods, true
}
