package sharing

import (
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// The effects of a taint that keep a pod away; PreferNoSchedule does not.
const (
	NoSchedule = "NoSchedule"
	NoExecute  = "NoExecute"
)

// Taint keeps away pods that do not tolerate it.
type Taint struct {
	Key, Value, Effect string
}

// String returns key=value:effect, as kubectl writes it, without = if there is no value.
func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// NodeObject is what a Kubernetes Node object shows about its GPUs. A landing.Node has only what decides where pods
// fit.
type NodeObject struct {
	Name                string
	Labels, Annotations map[string]string
	Taints              []Taint
	Unschedulable       bool
	// Capacity and Allocatable have the extended resources, zeros included; nil if the object does not show them.
	Capacity, Allocatable map[string]int64
	// Unreadable describes each invalid amount in the object, and what a valid one is. Such an amount is in neither
	// Capacity nor Allocatable.
	Unreadable []string
	// Conditions are statuses (True, False, Unknown) by type.
	Conditions map[string]string
	// Pods are the pods on the node that have not ended; nil while pods are unknown, which differs from none.
	Pods []Pod
	// Devices are the devices that ResourceSlices offer on the node.
	Devices []DRADevice
	// BootID identifies the machine's current boot, from status.nodeInfo; empty if it is not shown.
	BootID string
}

// Reader configures how nodes are read. The zero value uses the built-in tables.
type Reader struct {
	// Names adds resource names to the built-in ones.
	Names gpuinfo.Names
	// PoolLabel is a label that names the pool of a node. It takes precedence over those of cloud providers.
	PoolLabel string
	// TopologyLabels are the labels of Kubernetes nodes that Ray nodes have as well.
	TopologyLabels []TopologyLabel
	// At is when the nodes were read, for the age of annotations; zero for nodes from a file, which may have any age.
	At time.Time
}

// TopologyLabel says that each Ray node has the label Ray with the value of the label Node of its Kubernetes node.
type TopologyLabel struct{ Node, Ray string }
