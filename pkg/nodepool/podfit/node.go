package podfit

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Node is what of a Kubernetes node decides which pods it could hold. It is never changed once it is made.
type Node struct {
	Name string
	// Pool is the pool that it belongs to, empty where no label tells.
	Pool   string
	Labels map[string]string
	// Taints are those that keep pods away, effects NoSchedule and NoExecute.
	Taints []nodegpu.Taint
	// Unschedulable: the node is cordoned. Ready: its Ready condition is True.
	Unschedulable, Ready bool
	// Allocatable is what the node announces for pods. It does not tell what is free.
	Allocatable Quantities
	// Capacity is what the machine has, kept of nodes that Karpenter made alone: the limits of its pools count it.
	Capacity Quantities
	// Declared: there is no such node; it is what a pool with no node says a new one of it would be, and Name is the pool's.
	Declared bool
	// Alike is how many further nodes it stands for that are the same to the pod asked about (Classes); 0 almost everywhere.
	Alike int
	// GPUs is what is understood of the node's GPUs; nil where it was not read, which is most often because there are none.
	GPUs *nodegpu.GPUs
}

// Equal reports whether nothing that is kept differs: most updates of a Node are heartbeats.
func (n Node) Equal(other Node) bool {
	return n.Name == other.Name && n.Pool == other.Pool && n.Unschedulable == other.Unschedulable && n.Ready == other.Ready &&
		slices.Equal(n.Taints, other.Taints) && maps.Equal(n.Labels, other.Labels) && maps.Equal(n.Allocatable, other.Allocatable) &&
		maps.Equal(n.Capacity, other.Capacity) &&
		reflect.DeepEqual(n.GPUs, other.GPUs)
}

// Usable is what of a resource pods can get that work: what is announced, but for units of cards that are not well.
func (n *Node) Usable(name string) raydemand.Amount {
	have := n.Allocatable[name]
	if n.GPUs == nil {
		return have
	}
	if well, known := n.GPUs.WellUnits[name]; known {
		return min(have, raydemand.Whole(well))
	}
	return have
}

// object is the node in the form that nodegpu.Reader reads. Annotations and conditions are not kept of it; they tell problems, not kinds.
func (n Node) object() nodegpu.NodeObject {
	object := nodegpu.NodeObject{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable, Allocatable: map[string]int64{}}
	for name, amount := range n.Allocatable {
		if strings.Contains(name, "/") {
			object.Allocatable[name] = int64(amount / raydemand.One)
		}
	}
	return object
}

// MIGProfileFixed reports whether a node is of AKS, where the MIG profile of a pool is chosen when it is made and never changed after
// (AKS documentation, gpuInstanceProfile).
func (n *Node) MIGProfileFixed() bool {
	return slices.ContainsFunc(nodegpu.PoolLabels, func(row nodegpu.PoolLabel) bool { return row.Provider == "aks" && n.Labels[row.Key] != "" })
}

func (n *Node) PoolName() string {
	if n.Declared {
		return n.Name
	}
	return n.Pool
}

// ReadNode reads a node, or takes what was read of it already.
func ReadNode(g nodegpu.Reader, node *Node) nodegpu.GPUs {
	if node.GPUs != nil {
		return *node.GPUs
	}
	return g.Read(node.object())
}
