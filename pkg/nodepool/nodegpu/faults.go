package nodegpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readProblems finds the problems that do not depend on how the GPUs are shared.
func (r *reading) readProblems() {
	if r.node.Unschedulable {
		r.problem(Cordoned, "spec.unschedulable is set")
	}
	for _, c := range gpuConditions {
		if r.node.Conditions[c.name] == c.bad {
			r.problem(ConditionBad, c.name+" is "+c.bad)
		}
	}
	r.oddValues()
	r.missingDevices()
	r.nothingAnnounced()
	r.tooManyUnits()
	if ready := r.node.Conditions["Ready"]; ready != "" && ready != "True" {
		r.problem(NotReady, "Ready is "+ready)
	}
}

// gpuConditions are node conditions about GPUs with the status that reports a problem. Most are named after the
// problem; those of EKS after the healthy state.
var gpuConditions = []struct{ name, bad, source string }{
	{"GPUMissing", "True", "AKS node-problem-detector"},
	{"NVLinkStatusInactive", "True", "AKS node-problem-detector"},
	{"XIDErrors", "True", "AKS node-problem-detector"},
	{"GPUXIDErrors", "True", "AKS node-problem-detector, in its documentation"},
	{"UnhealthyNvidiaDevicePlugin", "True", "AKS node-problem-detector"},
	{"AcceleratedHardwareReady", "False", "EKS node monitoring agent"},
	{"NvidiaXidError", "True", "ACK node-problem-detector"},
	{"GPUDeviceLost", "True", "TKE node-problem-detector"},
	{"GPUDoubleBitEccError", "True", "TKE node-problem-detector"},
	{"GPUNvlinkError", "True", "TKE node-problem-detector"},
	{"GPUPCIeError", "True", "TKE node-problem-detector"},
	{"GPUXIDFatalError", "True", "TKE node-problem-detector"},
	{"GpuMemWatch", "True", "NVSentinel"},
	{"GpuNvlinkWatch", "True", "NVSentinel"},
	{"GpuPcieWatch", "True", "NVSentinel"},
	{"SysLogsXIDError", "True", "NVSentinel"},
	{"SysLogsGPUFallenOff", "True", "NVSentinel"},
}

// IsGPUCondition reports whether a node condition of this type is about GPUs.
func IsGPUCondition(name string) bool {
	for _, c := range gpuConditions {
		if c.name == name {
			return true
		}
	}
	return false
}

// missingDevices compares allocatable, which counts healthy devices, with capacity. A resource that is no longer
// announced keeps its old capacity and has allocatable 0 beside the new resource. That is not a fault.
func (r *reading) missingDevices() {
	if r.node.Allocatable == nil || r.node.Capacity == nil {
		return
	}
	for _, name := range r.announced() {
		capacity, allocatable := r.node.Capacity[name], r.node.Allocatable[name]
		switch {
		case allocatable >= capacity || allocatable == 0 && r.othersAnnounced(name):
		case r.gpus.Kind == gpuinfo.MPS && allocatable == 0:
			r.problem(DevicesMissing,
				fmt.Sprintf("%s: allocatable 0 of capacity %d: the MPS control daemon is not serving yet", name,
					capacity))
		default:
			r.problem(DevicesMissing, fmt.Sprintf("%s: allocatable %d of capacity %d: the others are unhealthy", name,
				allocatable, capacity))
		}
	}
}

func (r *reading) othersAnnounced(name string) bool {
	for other := range r.devices {
		if other != name && r.node.Allocatable[other] > 0 {
			return true
		}
	}
	return false
}

// nothingAnnounced reports GPUs that labels show and no resource offers. If the node's status is unknown, only labels
// that need no driver count: feature discovery's labels prove that the driver works.
func (r *reading) nothingAnnounced() {
	if len(r.node.Devices) > 0 {
		return // Dynamic Resource Allocation allocates them
	}
	if r.label(labelDeploy+"device-plugin") == "" && r.deploys() {
		r.problem(NoDevicePlugin,
			"the GPU operator deploys no device plugin here; "+
				"this is expected if Dynamic Resource Allocation allocates the GPUs")
		return
	}
	if len(r.announced()) > 0 || len(r.gpus.Problems) > 0 || r.gpus.Kind == gpuinfo.GPUMemory ||
		r.gpus.Kind == gpuinfo.VGPU {
		return
	}
	promise := ""
	switch {
	case r.label(LabelGKEAccelerator) != "":
		promise = LabelGKEAccelerator + "=" + r.label(LabelGKEAccelerator)
	case r.label("intel.feature.node.kubernetes.io/gpu") == "true":
		promise = "intel.feature.node.kubernetes.io/gpu=true"
	case r.gpus.Units != nil && r.label("nvidia.com/gpu.present") == "true":
		promise = "nvidia.com/gpu.present=true"
	}
	if promise != "" {
		r.problem(NothingAnnounced, promise+", and no GPU resource is announced")
	}
}

// deploys reports whether the GPU operator's labels say which of its components run here.
func (r *reading) deploys() bool {
	for key := range r.node.Labels {
		if strings.HasPrefix(key, labelDeploy) {
			return true
		}
	}
	return false
}

// tooManyUnits compares the announced units with what the cards can have: stale resources remain after repartitioning.
func (r *reading) tooManyUnits() {
	if r.gpus.Cards == nil || !r.productKnown || r.gpus.Kind != gpuinfo.MIG || r.gpus.Isolation != gpuinfo.Hardware ||
		r.gpus.Profile != nil {
		return // a card can have any number of shares
	}
	instances := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(r.gpus.Units)) {
		if resource, err := r.names.Resource(name); err == nil && resource.Profile != "" {
			instances[resource.Profile] = int(r.gpus.Units[name])
		}
	}
	cut, err := r.product.LeastCards(instances)
	if err != nil {
		return // an unknown profile is reported where it is read
	}
	whole := r.gpus.Units[gpuinfo.NvidiaGPU]
	if whole+int64(cut) > *r.gpus.Cards {
		r.problem(TooManyUnits, fmt.Sprintf("%s %d and instances for at least %d cards are announced on %d cards",
			gpuinfo.NvidiaGPU, whole, cut, *r.gpus.Cards))
		r.gpus.Isolation = gpuinfo.UnknownIsolation // it is unknown which of them exist
	}
}
