package nodeobject

import (
	resourcev1 "k8s.io/api/resource/v1"

	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// gpuDriver is NVIDIA's driver for Dynamic Resource Allocation. Attributes of other drivers' devices mean something
// else.
const gpuDriver = "gpu.nvidia.com"

// devices are what ResourceSlices offer, and what ResourceClaims have allocated of it.
type devices struct {
	// offered are by node. A pool can publish several slices, and a newer generation replaces an older one.
	offered map[string][]offeredDevice
	newest  map[string]int64 // generation by pool
	// claimed is nil until claims are read.
	claimed map[deviceID]bool
}

// deviceID is how an allocation names a device.
type deviceID struct{ driver, pool, device string }

type offeredDevice struct {
	id         deviceID
	generation int64
	device     nodegpu.DRADevice
}

func (d *devices) offer(slice *resourcev1.ResourceSlice) {
	if slice.Spec.Driver != gpuDriver || slice.Spec.NodeName == nil {
		return
	}
	if d.offered == nil {
		d.offered, d.newest = map[string][]offeredDevice{}, map[string]int64{}
	}
	pool, node := slice.Spec.Pool, *slice.Spec.NodeName
	d.newest[pool.Name] = max(d.newest[pool.Name], pool.Generation)
	for _, device := range slice.Spec.Devices {
		d.offered[node] = append(d.offered[node], offeredDevice{
			id: deviceID{
				slice.Spec.Driver,
				pool.Name,
				device.Name,
			},
			generation: pool.Generation,
			device:     draDevice(device),
		})
	}
}

func (d *devices) claim(claim *resourcev1.ResourceClaim) {
	if d.claimed == nil {
		d.claimed = map[deviceID]bool{}
	}
	if claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.AdminAccess != nil && *result.AdminAccess {
			continue // it only monitors the device
		}
		d.claimed[deviceID{result.Driver, result.Pool, result.Device}] = true
	}
}

// of returns the devices of a node, or nil if none are offered.
func (d *devices) of(node string) []nodegpu.DRADevice {
	var list []nodegpu.DRADevice
	for _, offered := range d.offered[node] {
		if offered.generation < d.newest[offered.id.pool] {
			continue
		}
		device := offered.device
		if d.claimed != nil {
			claimed := d.claimed[offered.id]
			device.Allocated = &claimed
		}
		list = append(list, device)
	}
	return list
}

// draDevice reads NVIDIA's attributes, whose names have the driver's domain or none.
func draDevice(device resourcev1.Device) nodegpu.DRADevice {
	text := func(name string) string {
		for _, key := range []string{name, gpuDriver + "/" + name} {
			if value := device.Attributes[resourcev1.QualifiedName(key)].StringValue; value != nil {
				return *value
			}
		}
		return ""
	}
	read := nodegpu.DRADevice{
		Name:       device.Name,
		Type:       text("type"),
		UUID:       text("uuid"),
		ParentUUID: text("parentUUID"),
		Product:    text("productName"),
		Profile:    text("profile"),
	}
	for _, key := range []string{"memory", gpuDriver + "/memory"} {
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
