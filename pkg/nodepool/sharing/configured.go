package sharing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readConfigured uses the kind of a resource that only the configuration knows.
func (r *reading) readConfigured() bool {
	for _, resource := range r.names.Configured {
		if units := r.gpus.Units[resource.Name]; resource.Kind == gpuinfo.GPUMemory &&
			max(units, r.node.Capacity[resource.Name]) > 0 {
			r.perCard(resource.Name, units)
			r.memory(resource.Name, int64(resource.Unit))
			return r.is(gpuinfo.GPUMemory, gpuinfo.UnknownIsolation) // a name does not show what isolates workloads
		}
	}
	for _, name := range r.announced() {
		resource, err := r.names.Resource(name)
		if err != nil || resource.Profile != "" {
			continue
		}
		switch resource.Kind {
		case gpuinfo.TimeSliced:
			return r.is(gpuinfo.TimeSliced, gpuinfo.NoIsolation)
		case gpuinfo.MPS, gpuinfo.VGPU:
			return r.is(resource.Kind, gpuinfo.Limit)
		case gpuinfo.Whole, gpuinfo.MIG:
			return r.is(resource.Kind, gpuinfo.Hardware)
		}
	}
	return false
}
