//go:build nvml && cgo && linux

package nvml

import (
	"cmp"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readMIG reads the MIG mode and the instances.
func (r *reading) readMIG() {
	if !r.machine.has("nvmlDeviceGetMigMode") {
		return
	}
	current, pending, ret := r.device.GetMigMode()
	if !r.answered(ret) {
		return // cards before Ampere, and boards without MIG
	}
	r.card.Cut = &gpuinfo.Cut{Enabled: current == nvml.DEVICE_MIG_ENABLE, Pending: pending == nvml.DEVICE_MIG_ENABLE,
		Instances: []gpuinfo.GPUInstance{}}
	if r.card.Cut.Enabled {
		r.card.Cut.Instances = r.instances()
	}
}

// instances lists the instances of each profile, because NVML has no list of all instances. If the list of one profile
// is not available, it returns nil: a partial layout would be wrong.
func (r *reading) instances() []gpuinfo.GPUInstance {
	all := []gpuinfo.GPUInstance{}
	for number := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		profile, ret := r.device.GetGpuInstanceProfileInfo(number)
		switch {
		case ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_INVALID_ARGUMENT:
			continue // the product, or this release of the driver, does not have this profile
		case !r.answered(ret):
			return nil
		}
		found, ok := r.instancesOf(number, profile)
		if !ok {
			return nil
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b gpuinfo.GPUInstance) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

func (r *reading) instancesOf(number int, profile nvml.GpuInstanceProfileInfo) ([]gpuinfo.GPUInstance, bool) {
	// go-nvml uses the count as the size of the buffer that NVML writes to, and on an A30 NVML reports a wrong count.
	// No card has more units than most.
	const most = 16
	wanted := profile
	wanted.InstanceCount = max(profile.InstanceCount, most)
	handles, ret := r.device.GetGpuInstances(&wanted)
	if !r.answered(ret) {
		return nil, false
	}
	var found []gpuinfo.GPUInstance
	for _, handle := range handles {
		info, ret := handle.GetInfo()
		if !r.answered(ret) {
			return nil, false
		}
		found = append(found, gpuinfo.GPUInstance{
			ID:       info.Id,
			Instance: gpuinfo.Instance{Profile: r.profileName(number, profile), Start: int(info.Placement.Start)},
			Size:     int(info.Placement.Size),
			Compute:  r.computeInstances(handle),
		})
	}
	return found, true
}

func (r *reading) computeInstances(instance nvml.GpuInstance) int {
	n := 0
	for number := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		profile, ret := instance.GetComputeInstanceProfileInfo(number, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if ret != nvml.SUCCESS || profile.InstanceCount == 0 {
			continue
		}
		if handles, ret := instance.GetComputeInstances(&profile); ret == nvml.SUCCESS {
			n += len(handles)
		}
	}
	return n
}

// attributes distinguish profiles with equal slices and memory.
var attributes = map[int][]string{
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1:   {"me"},
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_REV1:   {"me"},
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_GFX:    {"gfx"},
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_GFX:    {"gfx"},
	nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX:    {"gfx"},
	nvml.GPU_INSTANCE_PROFILE_4_SLICE_GFX:    {"gfx"},
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_NO_ME:  {"-me"},
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_NO_ME:  {"-me"},
	nvml.GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME: {"me.all"},
	nvml.GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: {"me.all"},
}

// profileName returns the product's profile that is near the name computed from slices and memory, or the computed name
// if the product is unknown. Drivers with MIG do not always have NVML's own function for names.
func (r *reading) profileName(number int, profile nvml.GpuInstanceProfileInfo) string {
	name := gpuinfo.ProfileName{
		Compute: int(profile.SliceCount), Slices: int(profile.SliceCount), GB: r.nominalGB(profile),
		Attributes: attributes[number],
	}
	product, _ := gpuinfo.ProductOf(r.card.Product)
	for _, known := range product.Profiles {
		if parsed, err := gpuinfo.ParseProfile(known.Name); err == nil && parsed.Near(name) {
			return known.Name
		}
	}
	return name.String()
}

// nominalGB returns the memory in the name of a profile. NVIDIA rounds the share of the card up to eighths, and
// multiplies it by the memory of the card in whole GiB (go-nvlib, getMigMemorySizeInGB).
func (r *reading) nominalGB(profile nvml.GpuInstanceProfileInfo) int {
	if r.card.Memory == nil || *r.card.Memory == 0 {
		return int((profile.MemorySizeMB + 1023) / 1024)
	}
	const eighths = 8
	card := float64(*r.card.Memory)
	share := math.Ceil(float64(profile.MemorySizeMB)/card*eighths) / eighths
	return int(math.Round(share * math.Ceil(card/1024)))
}
