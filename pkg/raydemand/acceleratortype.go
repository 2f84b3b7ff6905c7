package raydemand

import "strings"

// acceleratorTypes are the types for which Ray 2.60 has constants (ray: python/ray/util/accelerators/accelerators.py).
// Apple's type is left out, because no container sees such a device.
var acceleratorTypes = []string{
	"V100", "P100", "T4", "P4", "K80", "A10G", "L4", "L40S", "A100", "A100-40G", "A100-80G", "H100", "H200", "H20",
	"B200", "B300", "GB200", "GB300", "RTX-PRO-6000", "Intel-GPU-Max-1550", "Intel-GPU-Max-1100", "Intel-GAUDI",
	"AMD-Instinct-MI100", "AMD-Instinct-MI250X", "AMD-Instinct-MI250X-MI250", "AMD-Instinct-MI210",
	"AMD-Instinct-MI300A", "AMD-Instinct-MI300X-OAM", "AMD-Instinct-MI300X-HF", "AMD-Instinct-MI308X",
	"AMD-Instinct-MI325X-OAM", "AMD-Instinct-MI350X-OAM", "AMD-Instinct-MI355X-OAM", "AMD-Radeon-R9-200-HD-7900",
	"AMD-Radeon-HD-7900", "aws-neuron-core", "TPU-V2", "TPU-V3", "TPU-V4", "TPU-V5P", "TPU-V5LITEPOD", "TPU-V6E",
	"TPU-V7X", "Ascend910B", "Ascend910B4", "MXC500", "MXC550", "FURIOSA_RNGD", "MOBILINT_ARIES", "MOBILINT_REGULUS",
}

// AcceleratorTypePrefix is the prefix of the resource that a node with accelerators has one unit of, such as
// accelerator_type:A100.
const AcceleratorTypePrefix = "accelerator_type:"

// WithAnyAcceleratorType returns the resources of a node whose accelerator type is unknown, as if the node had every
// type. Ray detects the type on the machine when a node starts, so it is not known earlier. The result is b itself if b
// has no accelerator or names its type.
func (b Bundle) WithAnyAcceleratorType() Bundle {
	has := false
	for name, amount := range b {
		if strings.HasPrefix(name, AcceleratorTypePrefix) {
			return b
		}
		has = has || amount > 0 && IsUnitInstance(name)
	}
	if !has {
		return b
	}
	all := b.Clone()
	for _, name := range acceleratorTypes {
		all[AcceleratorTypePrefix+name] = One
	}
	return all
}

// AcceleratorType returns the accelerator type in the resources of a node, or "" if they have none.
func (b Bundle) AcceleratorType() string {
	for _, name := range b.Names() {
		if value, is := strings.CutPrefix(name, AcceleratorTypePrefix); is && b[name] > 0 {
			return value
		}
	}
	return ""
}
