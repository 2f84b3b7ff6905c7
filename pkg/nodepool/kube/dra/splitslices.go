package dra

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// slicePair is a ResourceSlice in two: without its counters, and they alone. counted is how many slices its pool then
// has.
type slicePair struct {
	devices, counters *resourcev1.ResourceSlice
	counted           int64
}

// splitSlices returns the slices of a pool with all counters in slices of their own, as the allocator wants them
// (docs/reference/facts.md#counters-and-devices-in-one-slice). A slice that did not change keeps its parts.
func (o *Objects) splitSlices(
	pool, newest []*resourcev1.ResourceSlice, split map[*resourcev1.ResourceSlice]slicePair,
) (all []*resourcev1.ResourceSlice) {
	counted := newest[0].Spec.Pool.ResourceSliceCount
	for _, slice := range newest {
		if len(slice.Spec.SharedCounters) > 0 && len(slice.Spec.Devices) > 0 {
			counted++
		}
	}
	if counted == newest[0].Spec.Pool.ResourceSliceCount {
		return pool
	}
	for _, slice := range pool {
		parts, known := o.split[slice]
		if !known || parts.counted != counted {
			devices, counters := *slice, *slice
			devices.Spec.SharedCounters, counters.Spec.Devices = nil, nil
			counters.Name += "-counters"
			devices.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = counted, counted
			parts = slicePair{&devices, &counters, counted}
		}
		split[slice] = parts
		if len(slice.Spec.Devices) > 0 || len(slice.Spec.SharedCounters) == 0 {
			all = append(all, parts.devices)
		}
		if len(slice.Spec.SharedCounters) > 0 {
			all = append(all, parts.counters)
		}
	}
	return all
}
