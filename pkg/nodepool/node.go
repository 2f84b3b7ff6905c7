package nodepool

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Quantities are amounts of Kubernetes resources under their exact names: cpu, memory in bytes, nvidia.com/mig-1g.10gb.
type Quantities map[string]raydemand.Amount

// Node is what of a Kubernetes node decides which pods it could hold. It is never changed once it is made.
type Node struct {
	Name   string
	Labels map[string]string
	// Taints are those that keep pods away, effects NoSchedule and NoExecute.
	Taints []Taint
	// Unschedulable: the node is cordoned. Ready: its Ready condition is True.
	Unschedulable, Ready bool
	// Allocatable is what the node announces for pods. It does not tell what is free.
	Allocatable Quantities
	// GPUs is what is understood of the node's GPUs; nil where it was not read, which is most often because there are none.
	GPUs *NodeGPUs
}

// Equal reports whether nothing that is kept differs: most updates of a Node are heartbeats.
func (n Node) Equal(other Node) bool {
	return n.Name == other.Name && n.Unschedulable == other.Unschedulable && n.Ready == other.Ready &&
		slices.Equal(n.Taints, other.Taints) && maps.Equal(n.Labels, other.Labels) && maps.Equal(n.Allocatable, other.Allocatable)
}

// announced is the node in the form that GPUReader reads, without what is not kept of it: annotations, conditions and capacity, which tell
// problems more than kinds.
func (n *Node) announced() NodeObject {
	object := NodeObject{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable, Allocatable: map[string]int64{}}
	for name, amount := range n.Allocatable {
		if strings.Contains(name, "/") {
			object.Allocatable[name] = whole(amount)
		}
	}
	return object
}

// The effects of a taint that keep a pod away; PreferNoSchedule does not.
const (
	NoSchedule = "NoSchedule"
	NoExecute  = "NoExecute"
)

// Taint keeps pods away that do not tolerate it.
type Taint struct {
	Key, Value, Effect string
}

// String writes key=value:effect like kubectl, without = where there is no value.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}
