package landing

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Slice describes one unit of a GPU resource for the pods of a worker group. Without nodes, it is what the name of the
// resource and the template's nodeSelector say. What is unknown is nil, or kind and isolation unknown; a number is
// never more than what the worst of the nodes offers.
type Slice struct {
	Kind gpuinfo.Kind `json:"kind"`
	// Resource is the Kubernetes resource that pods request; UnitsPerPod is how much of it one pod takes.
	Resource    string `json:"resource"`
	UnitsPerPod int64  `json:"unitsPerPod"`
	// MemoryMiB is the memory behind one unit. Nominal says that it is the round figure in the MIG profile's name (10gb
	// is 10240 MiB), because no node and no table has the real one, which is a little less.
	MemoryMiB *int64 `json:"memoryMiB"`
	Nominal   bool   `json:"nominal"`
	// ComputeFraction is the guaranteed part of one card's compute for one unit, in compute slices (2g on an A100 is
	// 2/7) or percent of multiprocessors.
	ComputeFraction *float64          `json:"computeFraction"`
	Isolation       gpuinfo.Isolation `json:"isolation"`
	// Profile is the MIG profile, Product the model of the card as nodes name it.
	Profile *string `json:"profile"`
	Product *string `json:"product"`
	// Blocks is how many places for larger MIG instances one more unit removes, on the card that suits it best; nil if
	// no card is known.
	Blocks *int64 `json:"blocks,omitempty"`
	// Differ describes what the nodes hand out under the resource name, by kind of node, if they differ: the Slice is
	// then the least of it. Otherwise it is empty.
	Differ []string `json:"differ,omitempty"`
}

// Each returns the memory and the part of a card's compute behind one Ray GPU when a pod with this slice reports
// numGPUs of them to Ray: for example four units of gpu-mem that are one GPU to Ray, or half an instance with
// num_gpus=0.5. Unknown values are nil.
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

// SlicesOf describes the GPUs of one pod of this shape, with one Slice for each resource that hands out devices or
// memory of them, sorted by name. Memory and cores beside devices say how much of each device is meant. If the pod fits
// on nodes that hand out different things under the same name, as pools with and without MIG do for nvidia.com/gpu, the
// Slice is the least favorable one, and Differ says so.
func SlicesOf(g sharing.Reader, shape *PodShape, nodes []Node) []Slice {
	requests := slicesAsked(g, shape)
	if len(requests) == 0 {
		return nil
	}
	var read []sharing.GPUs
	for _, node := range shape.FittingNodes(nodes) {
		read = append(read, ReadNode(g, node))
	}
	if len(read) == 0 {
		read = []sharing.GPUs{gpusSelected(g, shape)}
	}
	answers := make([]Slice, len(requests))
	for i, request := range requests {
		answers[i] = request.least(read)
		answers[i].Blocks = request.blocks(read)
	}
	return answers
}

// gpusSelected reads a node of which only the labels of the template's nodeSelector are known. That proves a profile or
// a way of sharing. It proves that cards are whole only if feature discovery's product is selected, whose name includes
// anything else.
func gpusSelected(g sharing.Reader, shape *PodShape) sharing.GPUs {
	read := g.Read(sharing.NodeObject{Labels: shape.Selector})
	if read.Kind == gpuinfo.Whole && shape.Selector[sharing.LabelProduct] == "" {
		read.Kind, read.Isolation = gpuinfo.UnknownKind, gpuinfo.UnknownIsolation
	}
	return read
}

// sliceRequest is a resource that a pod requests, with what it requests beside it.
type sliceRequest struct {
	resource gpuinfo.Resource
	units    int64
	// memory is in units of memoryResource of each device, memoryPercent in percent of its card's memory, cores in
	// percent of a card; 0 if not requested.
	memory, memoryPercent, cores int64
	memoryResource               string
}

// slicesAsked finds the requested resources that hand out GPUs: devices or, without any, memory that is handed out
// alone, or cores.
func slicesAsked(g sharing.Reader, shape *PodShape) []sliceRequest {
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
	list := cores
	for _, nearer := range [][]sliceRequest{memories, devices} {
		if len(nearer) > 0 {
			list = nearer
		}
	}
	for i := range list {
		list[i].beside(shape)
	}
	return list
}

// beside fills in what is requested beside a resource.
func (w *sliceRequest) beside(shape *PodShape) {
	asked := sharing.Beside(w.resource.Name, shape.Requests)
	w.memoryResource, w.memory, w.memoryPercent, w.cores = asked.Resource, asked.Memory, asked.Percent, asked.Cores
	if len(shape.Parts) > 0 && w.memory > 0 {
		part, _ := shape.request()
		w.memory, w.cores = part.Memory, part.Cores
	}
}

// blocks returns how many places for larger instances one more device removes, on the card that suits it best:
// considering the instances that are in use now, as far as single cards are known. The layout of such a card can be
// changed around what is in use. It is nil if the device is not a MIG instance, or no card is known.
func (w sliceRequest) blocks(nodes []sharing.GPUs) *int64 {
	var least *int64
	for _, node := range nodes {
		profile := w.resource.Profile
		if profile == "" && node.Profile != nil {
			profile = *node.Profile
		}
		product, known := productOf(node)
		if profile == "" || !known {
			continue
		}
		for _, card := range node.PerCard {
			if n, ok := node.WithUse(card).PlacesLost(product, profile); ok && (least == nil || n < *least) {
				least = &n
			}
		}
	}
	return least
}
