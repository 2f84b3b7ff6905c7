package nodegpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

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
		case isUnknownGPU(err):
			// KubeRay counts every resource whose name ends in gpu as GPUs.
			if strings.HasSuffix(name, "gpu") {
				r.gpus.Units[name] = shown[name]
			}
			if shown[name] > 0 {
				r.unknown = true
				r.problem(ResourceNotKnown, err.Error())
			}
		}
	}
}

// readProduct finds the model. Labels read from the driver take precedence over labels that a cloud chose.
func (r *reading) readProduct() {
	model := r.label(LabelProduct)
	if cut := strings.Index(model, "-MIG-"); cut >= 0 {
		model = model[:cut]
	}
	model = strings.TrimSuffix(model, "-SHARED")
	if model == "" {
		model = hamiModel(r.node)
	}
	if model == "" {
		model = r.label(LabelACKName, "gpu.nvidia.com/model", "karpenter.k8s.aws/instance-gpu-name",
			LabelGKEAccelerator, "amd.com/gpu.product-name")
	}
	if model != "" {
		r.gpus.Product = &model
		r.product, r.productKnown = gpuinfo.ProductOf(model)
	}
}

// readCards reads the number of cards, and the memory of one, from labels.
func (r *reading) readCards() {
	for _, key := range cardCounts {
		if key == labelCount && strings.Contains(r.label(LabelProduct), "-MIG-") {
			continue // there it counts MIG devices
		}
		switch n, ok := r.number(key); {
		case !ok || n == 0:
		case n > mostCards:
			r.problem(LabelUnreadable, fmt.Sprintf("%s=%d: want at most %d cards", key, n, mostCards))
		default:
			r.cards(n)
		}
		if r.gpus.Cards != nil {
			break
		}
	}
	if n := r.gpus.Units[gpuinfo.AliyunCount]; r.gpus.Cards == nil && n > 0 {
		r.cards(n)
	}
	if r.gpus.Cards == nil {
		r.intelCards()
	}
	if memory, ok := memoryText(r.label(labelACKMemory)); ok {
		r.gpus.CardMemoryMiB = &memory
	}
	if memory, ok := r.number("karpenter.k8s.aws/instance-gpu-memory"); ok && memory > 0 {
		r.gpus.CardMemoryMiB = &memory
	}
}

// intelCards adds up feature discovery's counts by PCI device.
func (r *reading) intelCards() {
	var sum int64
	for _, key := range slices.Sorted(maps.Keys(r.node.Labels)) {
		if strings.HasPrefix(key, "gpu.intel.com/device-id.") && strings.HasSuffix(key, ".count") {
			n, _ := r.number(key)
			sum += n
		}
	}
	if sum > 0 {
		r.cards(sum)
	}
}
