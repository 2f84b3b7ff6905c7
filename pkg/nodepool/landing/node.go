package landing

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Node is the part of a Kubernetes node that decides which pods it could hold. It is immutable.
type Node struct {
	Name string
	// Pool is the name of its pool; empty if no label names one.
	Pool   string
	Labels map[string]string
	// Taints are those with the effects NoSchedule and NoExecute, which keep pods away.
	Taints []sharing.Taint
	// CreatedAt is when the node registered; zero if unknown. The devices of a young node may not be announced yet.
	CreatedAt time.Time
	// Unschedulable: the node is cordoned. Ready: its Ready condition is True.
	Unschedulable, Ready bool
	// Allocatable is what the node offers to pods in total, not what is free.
	Allocatable Quantities
	// Capacity is what the machine has. It is kept only for nodes that Karpenter created, because the limits of its
	// pools count it.
	Capacity Quantities
	// Open is what may be supplied on the node although nothing says how much, with the reason, by resource. The empty
	// name stands for every resource that a DeviceClass can supply.
	Open map[string]string
	// Declared says that the node does not exist: it is the declared shape of a new node of a pool without nodes, and
	// Name is the pool's.
	Declared bool
	// Alike is how many other nodes it represents that are the same for the pod in question (Nodes.For).
	Alike int
	// GPUs describes the node's GPUs; nil if they were not read, usually because there are none.
	GPUs *sharing.GPUs
	// Devices are those that pods get in several ways, all of them.
	Devices []Devices
	// Use is what pods take of the node; nil if its pods are unknown, so that it counts as empty. It changes often, so
	// neither Equal nor the class of the node depends on it.
	Use *Use
	// class is the node's class; zero if it is not computed yet (Classed).
	class nodeClass
}

// Equal reports whether the stored fields are equal: most updates of a Node are heartbeats.
func (n Node) Equal(other Node) bool {
	return n.Name == other.Name && n.Pool == other.Pool && n.Unschedulable == other.Unschedulable &&
		n.Ready == other.Ready && maps.Equal(n.Open, other.Open) && n.CreatedAt.Equal(other.CreatedAt) &&
		slices.Equal(n.Taints, other.Taints) && maps.Equal(n.Labels, other.Labels) &&
		maps.Equal(n.Allocatable, other.Allocatable) &&
		maps.Equal(n.Capacity, other.Capacity) &&
		reflect.DeepEqual(n.GPUs, other.GPUs) && reflect.DeepEqual(n.Devices, other.Devices)
}

// Usable returns how much of a resource pods can really use: what the node reports, without units of unhealthy cards.
func (n *Node) Usable(name string) raydemand.Amount {
	have := n.Allocatable[name]
	if n.GPUs != nil {
		if well, known := n.GPUs.HealthyUnits[name]; known {
			return min(have, raydemand.Whole(well))
		}
	}
	return have
}

// Object converts the node to the form that sharing.Reader reads. Annotations and conditions are not stored; they
// report problems, not kinds.
func (n Node) Object() sharing.NodeObject {
	object := sharing.NodeObject{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable,
		Allocatable: map[string]int64{}}
	for name, amount := range n.Allocatable {
		if strings.Contains(name, "/") {
			object.Allocatable[name] = int64(amount / raydemand.One)
		}
	}
	return object
}

// migProfileFixed reports whether the node is of AKS, where the MIG profile of a pool is chosen at its creation and
// never changes (AKS documentation, gpuInstanceProfile).
func (n *Node) migProfileFixed() bool {
	return slices.ContainsFunc(sharing.PoolLabels, func(row sharing.PoolLabel) bool {
		return row.Provider == "aks" && n.Labels[row.Key] != ""
	})
}

func (n *Node) PoolName() string {
	if n.Declared {
		return n.Name
	}
	return n.Pool
}

// ReadNode returns the node's GPUs, reading them if they were not read before.
func ReadNode(g sharing.Reader, node *Node) sharing.GPUs {
	if node.GPUs != nil {
		return *node.GPUs
	}
	return g.Read(node.Object())
}

// label returns the value of a label. A declared shape is of the pool that it describes, whether it says so or not.
func (n *Node) label(key string) (string, bool) {
	value, set := n.Labels[key]
	if !set && n.Declared && isPoolLabel(key) {
		return n.Name, true
	}
	return value, set
}

func isPoolLabel(key string) bool {
	return slices.ContainsFunc(sharing.PoolLabels, func(row sharing.PoolLabel) bool { return row.Key == key })
}

// Use is what the pods that are bound to a node take of it. Pods that have ended take nothing.
type Use struct {
	// Requests is the sum of their requests, with the number of pods under "pods".
	Requests Quantities
	// Cards is what the pods leave free on each card; nil if single cards are unknown.
	Cards []sharing.Card
	// Devices is what is free of each of the node's Devices; nil if that is unknown.
	Devices []int64
	// Unrecorded names a pod that uses part of a card of which no annotation says which it is; nil if there is none.
	Unrecorded *sharing.Problem
	// Pods is what terms of other pods see of the pods: their namespaces, their labels, and their own anti-affinity.
	Pods []*Neighbors
}
