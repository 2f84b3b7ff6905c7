package sharing

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
