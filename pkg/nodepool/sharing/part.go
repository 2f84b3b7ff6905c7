package sharing

import (
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
	return false
}
