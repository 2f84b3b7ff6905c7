package decode

import (
	"cmp"
	"maps"
	"reflect"
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

// Devices are what ResourceSlices offer on nodes, and what ResourceClaims have of it. They change as the objects do.
// The zero value knows neither.
type Devices struct {
	// offers are by the name of the slice, and holders by namespace and name of the claim; holders is nil until claims
	// are read.
	offers  map[string]offer
	holders map[types.NamespacedName][]deviceID
}

// offer is what one ResourceSlice offers. A pool, whose name here begins with that of its driver, can publish several
// slices, and a newer generation replaces an older one.
type offer struct {
	pool       string
	generation int64
	devices    []placedDevice
}

// placedDevice is a device with the name of its node.
type placedDevice struct {
	node string
	sharing.DRADevice
}

// deviceID is how an allocation names a device.
type deviceID struct{ pool, device string }

// PutSlice keeps what a ResourceSlice offers, in place of what it offered before, and reports whether that differs.
// Slices of drivers of other devices offer nothing, and neither do devices that are not of one node.
func (d *Devices) PutSlice(slice *resourcev1.ResourceSlice) (differs bool) {
	now := offer{
		pool: interned(slice.Spec.Driver + "/" + slice.Spec.Pool.Name), generation: slice.Spec.Pool.Generation,
	}
	for _, device := range slice.Spec.Devices {
		if node := cmp.Or(slice.Spec.NodeName, device.NodeName); node != nil { // the latter: perDeviceNodeSelection
			now.devices = append(now.devices, placedDevice{interned(*node), draDevice(slice.Spec.Driver, device)})
		}
	}
	if !isGPUDriver(slice.Spec.Driver) || slice.Spec.NodeName == nil && now.devices == nil {
		return d.DropSlice(slice.Name)
	}
	if d.offers == nil {
		d.offers = map[string]offer{}
	}
	before, known := d.offers[slice.Name]
	d.offers[slice.Name] = now
	return !known || !reflect.DeepEqual(before, now)
}

// DropSlice forgets a ResourceSlice that is gone, and reports whether it offered something.
func (d *Devices) DropSlice(name string) (differs bool) {
	_, known := d.offers[name]
	delete(d.offers, name)
	return known
}

// ClearSlices forgets all ResourceSlices, and reports whether there were some.
func (d *Devices) ClearSlices() (differs bool) {
	differs, d.offers = len(d.offers) > 0, nil
	return differs
}

// PutClaim keeps which devices a ResourceClaim has, in place of those that it had before, and reports whether these
// differ.
func (d *Devices) PutClaim(claim *resourcev1.ResourceClaim) (differs bool) {
	d.KnowClaims()
	name, held := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}, devicesOf(claim)
	if held == nil {
		return d.DropClaim(name)
	}
	differs = !slices.Equal(d.holders[name], held)
	d.holders[name] = held
	return differs
}

// DropClaim forgets a ResourceClaim that is gone, and reports whether it had devices.
func (d *Devices) DropClaim(name types.NamespacedName) (differs bool) {
	_, known := d.holders[name]
	delete(d.holders, name)
	return known
}

// ClearClaims forgets all ResourceClaims, which are unknown then, and reports whether they were known.
func (d *Devices) ClearClaims() (differs bool) {
	differs, d.holders = d.holders != nil, nil
	return differs
}

// KnowClaims notes that claims were read, even if there are none.
func (d *Devices) KnowClaims() {
	if d.holders == nil {
		d.holders = map[types.NamespacedName][]deviceID{}
	}
}

// devicesOf returns the GPUs that a ResourceClaim has. With admin access it only monitors them.
func devicesOf(claim *resourcev1.ResourceClaim) (held []deviceID) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if monitors := result.AdminAccess != nil && *result.AdminAccess; !monitors && isGPUDriver(result.Driver) {
			held = append(held, deviceID{interned(result.Driver + "/" + result.Pool), interned(result.Device)})
		}
	}
	return held
}

// ByNode returns the devices of all nodes that offer some, by the name of the node, in the order of the slices' names.
// It is unknown which are allocated until claims were read.
func (d *Devices) ByNode() map[string][]sharing.DRADevice {
	newest, held := map[string]int64{}, map[deviceID]bool{}
	for _, offer := range d.offers {
		newest[offer.pool] = max(newest[offer.pool], offer.generation)
	}
	for _, devices := range d.holders {
		for _, id := range devices {
			held[id] = true
		}
	}
	byNode := map[string][]sharing.DRADevice{}
	for _, name := range slices.Sorted(maps.Keys(d.offers)) {
		offer := d.offers[name]
		if offer.generation < newest[offer.pool] {
			continue
		}
		for _, placed := range offer.devices {
			device := placed.DRADevice
			if d.holders != nil {
				allocated := held[deviceID{offer.pool, device.Name}]
				device.Allocated = &allocated
			}
			byNode[placed.node] = append(byNode[placed.node], device)
		}
	}
	return byNode
}

// Claimed reports whether claims were read, and Offered whether slices offer GPUs.
func (d *Devices) Claimed() bool { return d.holders != nil }
func (d *Devices) Offered() bool { return len(d.offers) > 0 }

// Unplaced reports whether claims have GPUs, and no slice says on which nodes these are.
func (d *Devices) Unplaced() bool { return len(d.holders) > 0 && !d.Offered() }

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
