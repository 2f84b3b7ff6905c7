package decode

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// The drivers for Dynamic Resource Allocation whose attributes are known (kubernetes-sigs/dra-driver-nvidia-gpu;
// ROCm/k8s-gpu-dra-driver, driver-attributes.md).
const (
	nvidiaDriver = "gpu.nvidia.com"
	amdDriver    = "gpu.amd.com"
)

// isGPUDriver reports whether the devices of a driver are GPUs. Those of which other drivers are known have it in their
// names, as gpu.intel.com has.
func isGPUDriver(driver string) bool { return strings.Contains(driver, "gpu") }

// OffersGPUs reports whether a ResourceSlice offers GPUs of nodes that it names. Slices of drivers of other devices do
// not, and neither do devices that are not of one node.
func OffersGPUs(slice *resourcev1.ResourceSlice) bool {
	named := func(d resourcev1.Device) bool { return d.NodeName != nil } // perDeviceNodeSelection
	return isGPUDriver(slice.Spec.Driver) &&
		(slice.Spec.NodeName != nil || slices.ContainsFunc(slice.Spec.Devices, named))
}

// DevicesOf returns the devices that a ResourceClaim has. With admin access it only monitors them.
func DevicesOf(claim *resourcev1.ResourceClaim) (held []resourcev1.DeviceRequestAllocationResult) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.AdminAccess == nil || !*result.AdminAccess {
			held = append(held, result)
		}
	}
	return held
}

// HasGPU reports whether one of the devices of a claim is a GPU.
func HasGPU(held []resourcev1.DeviceRequestAllocationResult) bool {
	return slices.ContainsFunc(held, func(r resourcev1.DeviceRequestAllocationResult) bool {
		return isGPUDriver(r.Driver)
	})
}

// pool is a pool of devices of a driver. A pool can have several slices, and a newer generation replaces an older one.
type pool struct{ driver, name string }

// GPUsByNode returns the GPUs that ResourceSlices, by name, offer on nodes, by the name of the node, in the order of
// the slices' names. held are the devices of ResourceClaims; nil means that claims are not known, and then it is
// unknown which GPUs are allocated.
func GPUsByNode(
	offered map[string]*resourcev1.ResourceSlice,
	held map[types.NamespacedName][]resourcev1.DeviceRequestAllocationResult,
) map[string][]sharing.DRADevice {
	type deviceID struct {
		pool
		device string
	}
	newest, taken := map[pool]int64{}, map[deviceID]bool{}
	for _, slice := range offered {
		if from := (pool{slice.Spec.Driver, slice.Spec.Pool.Name}); OffersGPUs(slice) {
			newest[from] = max(newest[from], slice.Spec.Pool.Generation)
		}
	}
	for _, devices := range held {
		for _, r := range devices {
			taken[deviceID{pool{r.Driver, r.Pool}, r.Device}] = true
		}
	}
	byNode := map[string][]sharing.DRADevice{}
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		spec := &offered[name].Spec
		from := pool{spec.Driver, spec.Pool.Name}
		if !OffersGPUs(offered[name]) || spec.Pool.Generation < newest[from] {
			continue
		}
		for _, device := range spec.Devices {
			node := cmp.Or(spec.NodeName, device.NodeName)
			if node == nil {
				continue
			}
			read := draDevice(spec.Driver, device)
			if held != nil && !read.Shared {
				read.Allocated = new(taken[deviceID{from, device.Name}])
			}
			byNode[*node] = append(byNode[*node], read)
		}
	}
	return byNode
}

// draDevice reads the attributes of a driver, whose names have the driver's domain or none.
func draDevice(driver string, device resourcev1.Device) sharing.DRADevice {
	text := func(name string) string {
		for _, key := range []string{name, driver + "/" + name} {
			if value := device.Attributes[resourcev1.QualifiedName(key)].StringValue; value != nil {
				return *value
			}
		}
		return ""
	}
	read := sharing.DRADevice{
		Name:       device.Name,
		Type:       text("type"),
		UUID:       text("uuid"),
		ParentUUID: text("parentUUID"),
		Product:    text("productName"),
		Profile:    text("profile"),
		Shared:     device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
	}
	if driver == amdDriver {
		read.UUID, read.ParentUUID, read.Profile = text("pciAddr"), text("parentPciAddr"), text("partitionProfile")
		read.Type = map[string]string{"amdgpu": "gpu", "amdgpu-partition": sharing.AMDPartition}[read.Type]
	} else if driver != nvidiaDriver {
		read.Type = sharing.OtherDevice
	}
	for _, key := range []string{"memory", driver + "/memory"} {
		if capacity, set := device.Capacity[resourcev1.QualifiedName(key)]; set {
			read.MemoryMiB = capacity.Value.Value() >> 20
		}
	}
	for _, taint := range device.Taints {
		if taint.Effect == resourcev1.DeviceTaintEffectNoSchedule ||
			taint.Effect == resourcev1.DeviceTaintEffectNoExecute {
			read.Taint = taint.Key
		}
	}
	return read
}
