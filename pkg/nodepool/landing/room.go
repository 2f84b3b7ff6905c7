package landing

import (
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Room is a node pool with what its autoscaler may still add. An unknown bound is nil and means no bound: a pending pod
// may still make the pool grow.
type Room struct {
	// Pool is the pool's name; empty for all nodes that no label assigns to a pool.
	Pool string `json:"name"`
	// Source is where the bounds come from: cluster-autoscaler, karpenter or configuration; empty if there are none.
	Source string `json:"source,omitempty"`
	// Nodes is the number of existing nodes. Cordoned and unready nodes count, as they do for the pool's autoscaler.
	// Nodes that the autoscaler requested and that have not registered do not count, so that a pod waiting for one is
	// not counted a second time by its node.
	Nodes    int64  `json:"nodes"`
	MinNodes *int64 `json:"minNodes"`
	MaxNodes *int64 `json:"maxNodes"`
	// MayAddNodes is MaxNodes less Nodes, never below 0.
	MayAddNodes *int64 `json:"mayAddNodes"`
	// Limits bound the total of all nodes of the pool (Karpenter). Used is the capacity of Nodes in the limited
	// resources.
	Limits Quantities `json:"limits,omitempty"`
	Used   Quantities `json:"used,omitempty"`
	// Mixed: added nodes may differ in size from the existing ones, as with Karpenter.
	Mixed bool `json:"mixed,omitempty"`
	// Template describes every node that will be added, if it is known.
	Template *NodeTemplate `json:"-"`
}

// Pods is how many pods of one worker group a pool holds, and how many more it could hold. All values but Bound assume
// empty nodes. They are therefore totals for the group, and no pod counts twice, whether it is running, pending, or yet
// to be created.
type Pods struct {
	Pool string `json:"pool"`
	// PerNode is how many pods fit on an empty node that the pool adds, by its declared shape or the smallest node on
	// which one fits: requests are compared with what the node announces for pods, and parts of cards with each card.
	// Pods of DaemonSets are unknown. It is 0 if there is neither such a node nor a shape.
	PerNode int64 `json:"perNode"`
	// Holds is how many pods would fit on all existing nodes if they were empty and had come up. A cordoned node counts
	// with the pods of the group that are bound to it.
	Holds int64 `json:"holds"`
	// Bound is the number of pods of this group that are bound to a node of the pool and have neither failed nor are
	// being deleted.
	Bound int64 `json:"bound"`
	// MayAddNodes is the pool's. MayAddPods is how many pods fit on the nodes that may still be added. nil means
	// unknown, and therefore no bound.
	MayAddNodes *int64 `json:"mayAddNodes"`
	MayAddPods  *int64 `json:"mayAddPods"`
	// Has is what all nodes of the pool, existing and yet to be added, have of each resource that a pod requests, as if
	// they had come up. Resources without a bound are left out.
	Has Quantities `json:"has,omitempty"`
	// Cards are the cards of nodes that could hold a pod of the group, if product and partitions are known.
	Cards []sharing.CutCards `json:"cards,omitempty"`
	// Provisioned: Karpenter adds nodes to the pool, of any size that its NodePool allows.
	Provisioned bool `json:"provisioned,omitempty"`
	// ProfileFixed: the pool's MIG profile was chosen at its creation and cannot change, as on AKS.
	ProfileFixed bool `json:"profileFixed,omitempty"`
}

// Most returns how many pods of the group the pool can have in total, existing ones included; false if there is no
// bound.
func (p Pods) Most() (pods int64, bounded bool) {
	if p.MayAddPods == nil {
		return 0, false
	}
	// An existing pod has its place, whatever has been read about its node since.
	return max(p.Holds, p.Bound) + *p.MayAddPods, true
}
