package sharing

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// The highest plausible number of units of one resource on a node. The kubelet receives the names of all devices in one
// gRPC message of at most 16 MiB, and a name takes more than 16 bytes. Memory may be counted in bytes.
const (
	mostDevices = 1 << 20
	mostAmount  = 1 << 50
)

// most returns the highest plausible number of units of a resource on a node. isGPU is false if the name is not a GPU
// resource.
func (g Reader) most(name string) (units int64, isGPU bool) {
	switch resource, err := g.Names.Resource(name); {
	case err == nil:
		return MostUnits(resource), true
	case isUnknownGPU(err):
		return mostAmount, true
	}
	return 0, false
}

func MostUnits(resource gpuinfo.Resource) int64 {
	if resource.Role == gpuinfo.Devices {
		return mostDevices
	}
	return mostAmount
}

// CanAnnounce reports whether the node shows a readable, plausible amount of an extended resource as allocatable.
func (g Reader) CanAnnounce(node NodeObject, name string) bool {
	n, shown := node.Allocatable[name]
	most, isGPU := g.most(name)
	return shown && n >= 0 && (!isGPU || n <= most)
}

// plausible drops implausible amounts of GPU resources, which would otherwise be counted as cards and added up, and
// reports each as a problem.
func (r *reading) plausible(field string, shown map[string]int64) map[string]int64 {
	var kept map[string]int64
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		n := shown[name]
		most, isGPU := Reader{Names: r.names}.most(name)
		if !isGPU || n >= 0 && n <= most {
			continue
		}
		r.problem(AmountUnreadable,
			fmt.Sprintf("status.%s[%s] is %d: want 0 to %d; it is ignored", field, name, n, most))
		if kept == nil {
			kept = maps.Clone(shown)
		}
		delete(kept, name)
	}
	if kept == nil {
		return shown
	}
	return kept
}

// readUnits reads the announced resources. If the node shows only capacity, that is used for allocatable.
func (r *reading) readUnits() {
	shown := r.node.Allocatable
	if shown == nil {
		shown = r.node.Capacity
	}
	r.devices = map[string]int64{}
	if shown == nil {
		return
	}
	r.gpus.Units = map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		resource, err := r.names.Resource(name)
		switch {
		case err == nil:
			r.gpus.Units[name] = shown[name]
			if resource.Role == gpuinfo.Devices {
				r.devices[name] = max(shown[name], r.node.Capacity[name])
			}
		case isUnknownGPU(err) && r.forVirtualMachines():
		case isUnknownGPU(err):
			// KubeRay counts every resource whose name ends in gpu as GPUs.
			if strings.HasSuffix(name, "gpu") {
				r.gpus.Units[name] = shown[name]
			}
			if shown[name] > 0 {
				r.unknown = true
				r.problem(ResourceNotKnown, err.Error())
			}
		case errors.Is(err, gpuinfo.ErrForeign) && shown[name] > 0:
			r.unknown = true
			r.problem(ResourceForeign, err.Error()+"; if it is one, say so with --resource "+name+"=KIND")
		}
	}
	for name := range r.devices {
		if r.leftOver(name) {
			r.devices[name] = 0
		}
	}
}

// leftOver reports whether a resource is no longer announced while a resource of another domain is: its plugin was
// removed, and the kubelet keeps the name with its old capacity and allocatable 0. Volcano's scheduler ignores such a
// node, whatever its register says (volcano, NewGPUDevices in pkg/scheduler/api/devices/nvidia/vgpu/device_info.go).
func (r *reading) leftOver(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	for other := range r.devices {
		if r.gpus.Units[name] == 0 && r.gpus.Units[other] > 0 && !strings.HasPrefix(other, domain+"/") {
			return true
		}
	}
	return false
}

func isUnknownGPU(err error) bool { return errors.Is(err, gpuinfo.ErrUnknownResource) }
