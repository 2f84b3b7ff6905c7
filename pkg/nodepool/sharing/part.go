package sharing

import (
	"fmt"
	"regexp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// virtualCard is how the driver names a part of a card that a hypervisor gives to a virtual machine: NVIDIA A10-4Q, or
// A100-1-5C for an instance (NVIDIA vGPU software, "Virtual GPU types").
var virtualCard = regexp.MustCompile(`-\d{1,3}[QCAB]$`)

// readPart recognizes a machine with a part of a card. Other machines have the rest, and the node does not show what
// separates them.
func (r *reading) readPart() bool {
	machine, known := gpuinfo.MachineOf(r.label(instanceTypes...))
	if known && machine.Part() || r.label(labelVGPU) == "true" || virtualCard.MatchString(r.label(LabelProduct)) {
		r.gpus.Cards = nil
		return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
	}
	if r.gpus.Product == nil || !r.belowProduct(r.labelledMemory(), int64(gpuinfo.MemoryOf(*r.gpus.Product))) {
		return false
	}
	r.gpus.Cards, r.gpus.CardMemoryMiB = nil, nil
	return r.is(gpuinfo.UnknownKind, gpuinfo.UnknownIsolation)
}

// belowProduct reports labels that show far less memory than a card of the product has: a hypervisor or the driver
// gives a part of the card away, and no name says so, or a label is wrong. Drivers differ by less than a quarter.
func (r *reading) belowProduct(labelled, card int64) bool {
	if labelled <= 0 || 4*labelled >= 3*card {
		return false
	}
	r.problem(MemoryBelowProduct, fmt.Sprintf("labels show %d MiB of memory, and a card of the product %s has %d: a "+
		"unit is a part of a card, or a label is wrong", labelled, *r.gpus.Product, card))
	return true
}

// labelledMemory returns the MiB of a card that feature discovery, ACK or a cloud writes; 0 if none does.
func (r *reading) labelledMemory() int64 {
	if memory, ok := r.gfdMemory(); ok {
		return memory
	}
	if r.gpus.CardMemoryMiB != nil {
		return *r.gpus.CardMemoryMiB
	}
	return 0
}
