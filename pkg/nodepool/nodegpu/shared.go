package nodegpu

import (
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readSharing recognizes devices that NVIDIA's plugin announces several times: gpu.replicas above 1. MPS limits each
// client to its part of the memory; time-slicing limits none. The label sharing-strategy is as old as MPS in the
// plugin, so without it the strategy is time-slicing.
func (r *reading) readSharing() bool {
	replicas, counted := r.number(labelReplicas)
	strategy := r.label(labelSharing)
	product := r.label(LabelProduct)
	instances := strings.Contains(product, "-MIG-") && strings.HasSuffix(product, "-SHARED") // MPS does not share them
	if replicas <= 1 && strategy != "mps" && strategy != "time-slicing" && !instances {
		return false
	}
	if counted && replicas > 1 {
		r.gpus.Replicas = &replicas
		r.cardsOfShares(replicas)
	}
	// With the single strategy, gpu.memory is an instance's memory.
	memory, known := r.gfdMemory()
	if known && !strings.Contains(r.label(LabelProduct), "-MIG-") {
		r.gpus.CardMemoryMiB = &memory
	}
	if strategy != "mps" {
		return r.is(gpuinfo.TimeSliced, gpuinfo.NoIsolation)
	}
	for _, name := range r.announced() {
		if known && replicas > 1 {
			r.memory(name, memory/replicas)
		}
	}
	return r.is(gpuinfo.MPS, gpuinfo.Limit)
}

// cardsOfShares divides the announced units if no label counts cards and the shares are of whole cards.
func (r *reading) cardsOfShares(replicas int64) {
	names := r.announced()
	if r.gpus.Cards != nil || len(names) != 1 || strings.Contains(r.label(LabelProduct), "-MIG-") ||
		r.label(labelStrategy) != "" {
		return
	}
	if n := r.devices[names[0]]; n%replicas == 0 {
		r.cards(n / replicas)
	}
}

// readGKE recognizes GKE's own plugin, which writes no labels of feature discovery. A pool can have partitions, and
// share each card or partition among a number of clients. All of it is announced as nvidia.com/gpu.
func (r *reading) readGKE() bool {
	partition, sharing := r.label(labelGKEPartition), r.label(labelGKESharing)
	if partition == "" && sharing == "" {
		return false
	}
	if partition != "" {
		r.gkePartition(partition)
	}
	switch sharing {
	case "":
		return r.is(gpuinfo.MIG, gpuinfo.Hardware)
	case "time-sharing", "mps":
		if clients, ok := r.number(labelGKEClients); ok && clients > 0 {
			r.gpus.Replicas = &clients
			if partition == "" {
				r.cardsOfShares(clients)
			}
		}
		if sharing == "mps" {
			return r.is(gpuinfo.MPS, gpuinfo.Limit)
		}
		return r.is(gpuinfo.TimeSliced, gpuinfo.NoIsolation)
	}
	r.problem(LabelUnreadable, labelGKESharing+"="+sharing+": want time-sharing or mps")
	return true
}

func (r *reading) gkePartition(partition string) {
	if _, err := gpuinfo.ParseProfile(partition); err != nil {
		r.problem(LabelUnreadable, labelGKEPartition+": "+err.Error())
		return
	}
	r.gpus.Profile = &partition
}

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
