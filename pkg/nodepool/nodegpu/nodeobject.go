package nodegpu

import (
	"strings"
)

// DRADevice is a GPU, or a MIG instance, that a ResourceSlice of the node offers (resource.k8s.io/v1, driver
// gpu.nvidia.com). What the driver does not say is empty or 0.
type DRADevice struct {
	// Name is the device's in its slice: gpu-0, or gpu-0-mig-1g5gb-19-0 with NVML's profile number and the start.
	Name string
	// Type is gpu or mig; UUID its own, ParentUUID the card's of an instance.
	Type, UUID, ParentUUID string
	Product, Profile       string
	MemoryMiB              int64
	// Allocated: a ResourceClaim has it; nil while claims are not known.
	Allocated *bool
	// Taint is the reason why nothing is put there (gpu.nvidia.com/xid), empty when there is none.
	Taint string
}

// card is the identity of the card that a device is, or lies on.
func (d DRADevice) card() string {
	if d.Type == "mig" {
		if d.ParentUUID != "" {
			return d.ParentUUID
		}
		card, _, _ := strings.Cut(d.Name, "-mig-")
		return card
	}
	if d.UUID != "" {
		return d.UUID
	}
	return d.Name
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

// PodObject is what of a pod on a node tells what it holds of the node's GPUs.
type PodObject struct {
	Namespace, Name, Node string
	Annotations           map[string]string
	// Requests are the extended resources of all its containers.
	Requests map[string]int64
}

// NodeObject is what of a Kubernetes Node tells about its GPUs, as the API shows it. It is more than a Node, which only
// says what decides where pods can land.
type NodeObject struct {
	Name                string
	Labels, Annotations map[string]string
	Taints              []Taint
	Unschedulable       bool
	// Capacity and Allocatable have the extended resources, those with zero too; nil where the object does not show
	// them.
	Capacity, Allocatable map[string]int64
	// Unreadable says of each amount in the object that is none, and is therefore in neither, what it is and what would
	// be right.
	Unreadable []string
	// Conditions are statuses (True, False, Unknown) by type.
	Conditions map[string]string
	// Pods are those on the node that have not ended; nil where pods are not known, which is not the same as none.
	Pods []PodObject
	// Devices are what ResourceSlices offer on the node.
	Devices []DRADevice
	// BootID is the kernel's number of the machine's last start, from status.nodeInfo; empty where it is not shown.
	BootID string
}
