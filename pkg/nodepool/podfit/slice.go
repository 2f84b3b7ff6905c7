package podfit

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Slice is what one unit of a GPU resource is for the pods of a worker group. Without nodes it is what the name of the resource and the
// template's nodeSelector tell. What is not known is nil, or kind and isolation unknown; a number is never more than what the worst of the
// nodes gives.
type Slice struct {
	Kind gpuinfo.Kind `json:"kind"`
	// Resource is the Kubernetes resource that pods ask for, UnitsPerPod how much of it one pod takes.
	Resource    string `json:"resource"`
	UnitsPerPod int64  `json:"unitsPerPod"`
	// MemoryMiB is the memory behind one unit. Nominal says that it is the round figure in the MIG profile's name (10gb is 10240 MiB), for no
	// node and no table tells the real one, which is a little less.
	MemoryMiB *int64 `json:"memoryMiB"`
	Nominal   bool   `json:"nominal"`
	// ComputeFraction is the part of one card's compute that one unit is sure of, in compute slices (2g on an A100 is 2/7) or percent of
	// multiprocessors.
	ComputeFraction *float64          `json:"computeFraction"`
	Isolation       gpuinfo.Isolation `json:"isolation"`
	// Profile is the MIG profile, Product the model of the card as nodes name it.
	Profile *string `json:"profile"`
	Product *string `json:"product"`
	// Blocks is how many places for larger MIG instances one more of it takes away, on the card that is best for it; nil where no card tells.
	Blocks *int64 `json:"blocks,omitempty"`
}

// Each returns the memory and the part of a card's compute that one Ray GPU stands for when a pod with this slice announces numGPUs of them:
// four units of gpu-mem that are announced as one GPU, or half an instance behind num_gpus=0.5. What is not known is nil.
func (s Slice) Each(numGPUs raydemand.Amount) (memoryMiB *int64, computeFraction *float64) {
	if numGPUs <= 0 || s.UnitsPerPod <= 0 {
		return nil, nil
	}
	units := float64(s.UnitsPerPod) * float64(raydemand.One) / float64(numGPUs)
	if s.MemoryMiB != nil {
		memory := int64(float64(*s.MemoryMiB) * units)
		memoryMiB = &memory
	}
	if s.ComputeFraction != nil {
		fraction := *s.ComputeFraction * units
		computeFraction = &fraction
	}
	return memoryMiB, computeFraction
}

// SlicesOf tells what the GPUs of one pod of this shape are, one Slice for each resource that hands out devices or memory of them, by name.
// Memory and cores that come beside devices say how much of each device is meant. Where the pod could land on nodes that make different
// things of the same name, as pools with and without MIG do of nvidia.com/gpu, it is the least favourable one, and Differ says so.
func SlicesOf(g nodegpu.Reader, shape *PodShape, nodes []Node) []SliceAnswer {
	requests := slicesAsked(g, shape)
	if len(requests) == 0 {
		return nil
	}
	var read []nodegpu.GPUs
	for _, node := range shape.FittingNodes(nodes) {
		read = append(read, ReadNode(g, node))
	}
	if len(read) == 0 {
		read = []nodegpu.GPUs{gpusSelected(g, shape)}
	}
	answers := make([]SliceAnswer, len(requests))
	for i, request := range requests {
		answers[i] = request.least(read)
		answers[i].Blocks = request.blocks(read)
	}
	return answers
}

// SliceAnswer is a Slice, and what the nodes disagree about.
type SliceAnswer struct {
	Slice
	// Differ has what the nodes make of the resource in words, by kind of node, when that is not the same on all; else it is empty.
	Differ []string `json:"differ,omitempty"`
}

// gpusSelected is a node of which nothing is known but that it has the labels of the template's nodeSelector and no label more. It proves a
// profile or a way of sharing. That cards are whole it proves only where feature discovery's product is selected, which names what is not.
func gpusSelected(g nodegpu.Reader, shape *PodShape) nodegpu.GPUs {
	read := g.Read(nodegpu.NodeObject{Labels: shape.Selector})
	if read.Kind == gpuinfo.Whole && shape.Selector[nodegpu.LabelProduct] == "" {
		read.Kind, read.Isolation = gpuinfo.UnknownKind, gpuinfo.UnknownIsolation
	}
	return read
}

// sliceRequest is a resource that a pod asks for, with what it asks of it beside.
type sliceRequest struct {
	resource gpuinfo.Resource
	units    int64
	// memory in MiB of each device, memoryPercent of its card's memory, cores in percent of a card; 0 where not asked for.
	memory, memoryPercent, cores int64
}

// slicesAsked finds the resources that hand out GPUs: devices, or without any the memory that is handed out alone, or cores.
func slicesAsked(g nodegpu.Reader, shape *PodShape) []sliceRequest {
	var devices, memories, cores []sliceRequest
	for _, name := range slices.Sorted(maps.Keys(shape.Requests)) {
		units := WholeUnits(shape.Requests[name])
		resource, err := g.Names.Resource(name)
		if err != nil || units <= 0 {
			continue
		}
		switch w := (sliceRequest{resource: resource, units: units}); resource.Role {
		case gpuinfo.Devices:
			devices = append(devices, w)
		case gpuinfo.Memory:
			memories = append(memories, w)
		case gpuinfo.Cores:
			cores = append(cores, w)
		}
	}
	for _, list := range [][]sliceRequest{devices, memories, cores} {
		if len(list) == 0 {
			continue
		}
		for i := range list {
			list[i].beside(shape)
		}
		return list
	}
	return nil
}

// beside fills what comes beside a resource.
func (w *sliceRequest) beside(shape *PodShape) {
	asked := func(names ...string) int64 {
		for _, name := range names {
			if n := WholeUnits(shape.Requests[name]); n > 0 {
				return n
			}
		}
		return 0
	}
	switch w.resource.Name {
	case gpuinfo.NvidiaGPU:
		w.memory, w.memoryPercent, w.cores = asked(gpuinfo.HAMiMemory), asked(gpuinfo.HAMiMemoryPercentage), asked(gpuinfo.HAMiCores)
	case gpuinfo.VolcanoNumber:
		w.memory, w.memoryPercent, w.cores = asked(gpuinfo.VolcanoMemory), asked(gpuinfo.VolcanoMemoryPercentage), asked(gpuinfo.VolcanoCores)
	case gpuinfo.AliyunMemory:
		w.cores = asked(gpuinfo.AliyunCores)
	case gpuinfo.KoordinatorShared:
		w.memoryPercent, w.cores = asked(gpuinfo.KoordinatorMemoryRatio), asked(gpuinfo.KoordinatorCores)
	}
}

// WholeUnits counts the units that an amount fills.
func WholeUnits(amount raydemand.Amount) int64 { return int64(amount / raydemand.One) }
