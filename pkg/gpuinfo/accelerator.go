package gpuinfo

import "strings"

// Accelerator is a device that Ray counts as a resource of its own and not as GPU.
type Accelerator struct {
	// Resource is the name under which nodes announce it, and Ray is Ray's name of its units.
	Resource, Ray string
	// Passed says that the KubeRay operator passes a limit on to `ray start`.
	Passed bool
	// Source is the source of the row.
	Source string
}

// NeuronCores is the resource by which AWS's device plugin counts the cores of its Neuron devices.
const NeuronCores = "aws.amazon.com/neuroncore"

// accelerators are the rows for fixed names (docs/reference/facts.md#accelerators-that-are-no-gpus). Ray's names are
// those of Ray 2.60 (python/ray/_private/accelerators), and the operator's rule is that of KubeRay 1.6.2
// (customAcceleratorToRayResourceMap).
var accelerators = []Accelerator{
	{"google.com/tpu", "TPU", true, "GKE: chips; Ray: tpu.py"},
	{NeuronCores, "neuron_cores", true, "AWS Neuron device plugin: cores; Ray: neuron.py"},
	{"aws.amazon.com/neuron", "neuron_cores", false, "AWS Neuron device plugin: devices of several cores each"},
	{"aws.amazon.com/neurondevice", "neuron_cores", false, "AWS Neuron device plugin: an older name of the same"},
	{"habana.ai/gaudi", "HPU", false, "Intel Gaudi device plugin: cards; Ray: hpu.py"},
}

// ascend begins the resource names of Huawei's device plugin, such as huawei.com/Ascend910.
const ascend = "huawei.com/Ascend"

// AcceleratorOf returns the accelerator that a resource counts, and false if it counts none.
func AcceleratorOf(resource string) (Accelerator, bool) {
	for _, a := range accelerators {
		if a.Resource == resource {
			return a, true
		}
	}
	if strings.HasPrefix(resource, ascend) && !strings.HasSuffix(resource, "-memory") {
		return Accelerator{resource, "NPU", false, "Ascend device plugin: devices; Ray: npu.py"}, true
	}
	return Accelerator{}, false
}
