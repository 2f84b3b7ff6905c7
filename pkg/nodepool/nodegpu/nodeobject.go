package nodegpu

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool/allocation"
)

// DRADevice is a GPU, or a MIG instance, that a ResourceSlice of the node offers (resource.k8s.io/v1, driver
// gpu.nvidia.com). What the driver does not report is empty or 0.
type DRADevice struct {
	// Name is the device's name in its slice: gpu-0, or gpu-0-mig-1g5gb-19-0 with NVML's profile number and the start.
	Name string
	// Type is gpu or mig. UUID is the device's own, ParentUUID the UUID of an instance's card.
	Type, UUID, ParentUUID string
	Product, Profile       string
	MemoryMiB              int64
	// Allocated reports whether a ResourceClaim has the device; nil while claims are unknown.
	Allocated *bool
	// Taint is why nothing is allocated on the device (gpu.nvidia.com/xid), empty if there is no taint.
	Taint string
}

// card returns the identity of the card that the device is, or is on.
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

// NodeObject is what a Kubernetes Node object shows about its GPUs. A Node in podfit has only what decides where pods
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
	Pods []allocation.Pod
	// Devices are the devices that ResourceSlices offer on the node.
	Devices []DRADevice
	// BootID identifies the machine's current boot, from status.nodeInfo; empty if it is not shown.
	BootID string
}
