package landing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	units := float64(s.UnitsPerPod) * float64(raydemand.One)
	if s.MemoryMiB != nil {
		memoryMiB = new(int64(float64(*s.MemoryMiB) * units / float64(numGPUs)))
	}
	if s.ComputeFraction != nil {
		computeFraction = new(*s.ComputeFraction * (units / float64(numGPUs)))
	}
	return memoryMiB, computeFraction
}

// SlicesOf describes the GPUs of one pod of this shape, with one Slice for each resource that hands out devices or
// memory of them, sorted by name. Memory and cores beside devices say how much of each device is meant. If the pod fits
// on nodes that hand out different things under the same name, as pools with and without MIG do for nvidia.com/gpu, the
// Slice is the least favorable one, and Differ says so.
func SlicesOf(g sharing.Reader, shape *PodShape, nodes []Node) []Slice {
	requests := slicesAsked(g, shape.Own)
	if len(requests) == 0 {
		requests = slicesAsked(g, shape.Requests)
	}
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
	}
	return answers
}

// SlicesOn describes the GPUs of one pod of this shape on a node.
func SlicesOn(names gpuinfo.Names, shape *PodShape, node sharing.GPUs) (answers []Slice) {
	for _, request := range slicesAsked(sharing.Reader{Names: names}, shape.Requests) {
		if len(shape.Parts) > 0 && request.memory > 0 {
			part, _ := shape.request()
			request.memory, request.cores = part.Memory, part.Cores
		}
		answers = append(answers, request.on(node))
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
func slicesAsked(g sharing.Reader, requests Quantities) []sliceRequest {
	var devices, memories, cores []sliceRequest
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		units := WholeUnits(requests[name])
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
		w, asked := &list[i], sharing.Beside(list[i].resource.Name, requests)
		w.memoryResource, w.memory, w.memoryPercent, w.cores = asked.Resource, asked.Memory, asked.Percent, asked.Cores
	}
	return list
}

// least returns the least favorable of what the nodes hand out under the resource name: the weakest isolation, the
// least memory and compute, and nothing that one node does not report. The kind is that of the weakest.
func (w sliceRequest) least(read []sharing.GPUs) Slice {
	var answer Slice
	kinds := map[string]bool{}
	for i, node := range read {
		s := w.on(node)
		kinds[s.words()] = true
		if i == 0 {
			answer = s
			continue
		}
		answer = Lesser(answer, s)
	}
	if len(kinds) > 1 {
		answer.Differ = slices.Sorted(maps.Keys(kinds))
	}
	return answer
}

// Lesser returns what is true of both: the weaker isolation with its kind, and the smaller amounts. What is unknown in
// one of them is unknown.
func Lesser(a, b Slice) Slice {
	if Strength(b.Isolation) < Strength(a.Isolation) {
		a, b = b, a
	}
	if a.MemoryMiB == nil || b.MemoryMiB == nil {
		a.MemoryMiB, a.Nominal = nil, false
	} else if *b.MemoryMiB < *a.MemoryMiB {
		a.MemoryMiB, a.Nominal = b.MemoryMiB, b.Nominal
	}
	if a.ComputeFraction == nil || b.ComputeFraction == nil {
		a.ComputeFraction = nil
	} else if *b.ComputeFraction < *a.ComputeFraction {
		a.ComputeFraction = b.ComputeFraction
	}
	a.Profile, a.Product = same(a.Profile, b.Profile), same(a.Product, b.Product)
	return a
}

func same(a, b *string) *string {
	if a == nil || b == nil || *a != *b {
		return nil
	}
	return a
}

// words distinguishes kinds of slices. It leaves out memory, which differs by some MiB from driver to driver.
func (s Slice) words() string {
	parts := []string{string(s.Kind)}
	if s.Profile != nil {
		parts = append(parts, *s.Profile)
	}
	if s.Product != nil {
		parts = append(parts, "of "+*s.Product)
	}
	return fmt.Sprintf("%s (isolation %s)", strings.Join(parts, " "), s.Isolation)
}

func (w sliceRequest) on(node sharing.GPUs) Slice {
	s := Slice{Kind: w.resource.Kind, Resource: w.resource.Name, UnitsPerPod: w.units,
		Isolation: gpuinfo.UnknownIsolation, Product: node.Product}
	switch {
	case w.resource.Profile != "":
		w.instance(&s, node)
	case s.Kind == gpuinfo.GPUMemory:
		w.memoryUnits(&s, node)
	case s.Kind == gpuinfo.VGPU || node.Kind == gpuinfo.VGPU || w.memory+w.memoryPercent+w.cores > 0:
		w.share(&s, node)
	default:
		w.device(&s, node)
	}
	return s
}

func (w sliceRequest) instance(s *Slice, node sharing.GPUs) {
	s.Profile = &w.resource.Profile
	shares := w.resource.Shared || node.Kind == gpuinfo.TimeSliced
	if shares {
		s.Kind, s.Isolation = gpuinfo.TimeSliced, gpuinfo.NoIsolation
		return
	}
	if node.Kind == gpuinfo.UnknownKind && node.Units != nil {
		return // its labels and amounts contradict each other, or are changing
	}
	s.Isolation = gpuinfo.Hardware
	s.cut(w.resource.Profile, node, node.MemoryMiB[w.resource.Name])
}

// cut fills in memory and compute of a MIG instance: what the node reports, the table's figures for its product, or
// what the profile's name says.
func (s *Slice) cut(profile string, node sharing.GPUs, measured int64) {
	product, known := node.KnownProduct()
	p, has := product.Profile(profile)
	has = has && known
	name, err := gpuinfo.ParseProfile(profile)
	if err != nil {
		return
	}
	switch {
	case measured > 0:
		s.MemoryMiB = &measured
	case has && p.Memory > 0:
		s.MemoryMiB = new(int64(p.Memory))
	default:
		s.MemoryMiB, s.Nominal = new(int64(name.GB)*1024), true
	}
	parts, card, agreed := gpuinfo.OfCard(profile)
	if has {
		parts, card, agreed = p.Slices, product.Slices, true
	}
	if agreed {
		s.ComputeFraction = new(float64(parts) / float64(card))
	}
}

// memoryUnits fills in memory that is handed out in units of one card.
func (w sliceRequest) memoryUnits(s *Slice, node sharing.GPUs) {
	if node.Kind == gpuinfo.GPUMemory {
		s.Isolation = node.Isolation
	}
	if memory := max(node.MemoryMiB[w.resource.Name], int64(w.resource.Unit)); memory > 0 {
		s.MemoryMiB = &memory
	}
	if w.cores > 0 {
		s.ComputeFraction = new(float64(w.cores) / 100 / float64(w.units))
	}
}

// share fills in a part of a card by HAMi, Volcano or Koordinator: an amount of memory and of cores of each card, or
// all of the memory if none is requested.
func (w sliceRequest) share(s *Slice, node sharing.GPUs) {
	s.Kind, s.Isolation = gpuinfo.VGPU, gpuinfo.Limit
	if node.Kind == gpuinfo.VGPU {
		s.Isolation = node.Isolation
	}
	if w.resource.Role != gpuinfo.Devices {
		return // It is percent of a card of unknown size.
	}
	percent := cmp.Or(w.memoryPercent, 100)
	unit, known := node.MemoryUnit(w.memoryResource)
	memory := w.memory * unit
	needed := memory
	switch {
	case w.memory > 0 && known:
		s.MemoryMiB = &memory
	case w.memory == 0 && node.CardMemoryMiB != nil:
		memory = *node.CardMemoryMiB * min(percent, 100) / 100
		if s.MemoryMiB = &memory; percent < 100 {
			needed = memory
		}
	}
	if profile, cut := node.Holding(needed); cut && known {
		s.Profile = &profile.Name
		s.cut(profile.Name, node, profile.MemoryMiB)
		return
	}
	if w.cores > 0 {
		s.ComputeFraction = new(float64(w.cores) / 100)
	}
}

// device fills in what is handed out under a name that many kinds share: nvidia.com/gpu and similar names. Beside
// instances under their own names it is what is not cut: cards, or shares of cards if the node isolates less than
// instances do.
func (w sliceRequest) device(s *Slice, node sharing.GPUs) {
	s.Isolation = node.Isolation
	s.Kind = node.Kind
	if node.Kind == gpuinfo.MIG && node.Profile == nil {
		s.Kind = map[gpuinfo.Isolation]gpuinfo.Kind{
			gpuinfo.Hardware: gpuinfo.Whole, gpuinfo.Limit: gpuinfo.MPS, gpuinfo.NoIsolation: gpuinfo.TimeSliced,
			gpuinfo.UnknownIsolation: gpuinfo.WholeUnproven,
		}[node.Isolation]
		if s.Kind == "" || !node.Announces(w.resource.Name) {
			s.Kind = gpuinfo.UnknownKind
		}
	}
	if w.resource.Shared && s.Kind == gpuinfo.WholeUnproven {
		s.Kind = gpuinfo.UnknownKind // the name says that it is a share
	}
	if s.Kind == gpuinfo.UnknownKind && w.resource.Kind != gpuinfo.UnknownKind && !node.Contradicts() {
		s.Kind = w.resource.Kind
		if s.Kind == gpuinfo.Whole || s.Kind == gpuinfo.MIG {
			s.Isolation = gpuinfo.Hardware
		}
	}
	switch s.Kind {
	case gpuinfo.MIG:
		if s.Profile = node.Profile; s.Profile != nil {
			s.cut(*node.Profile, node, node.MemoryMiB[w.resource.Name])
		}
	case gpuinfo.Whole:
		all := 1.0
		s.ComputeFraction, s.MemoryMiB = &all, node.CardMemoryMiB
		if memory := node.MemoryMiB[w.resource.Name]; memory > 0 {
			s.MemoryMiB = &memory
		}
	case gpuinfo.MPS:
		if memory := node.MemoryMiB[w.resource.Name]; memory > 0 {
			s.MemoryMiB = &memory
		}
		// Shares of an instance are not a known part of a card.
		if s.Profile = node.Profile; s.Profile == nil && node.Replicas != nil && *node.Replicas > 0 {
			s.ComputeFraction = new(1 / float64(*node.Replicas))
		}
	case gpuinfo.TimeSliced:
		s.Profile = node.Profile
	}
}

// Strength orders isolations, weakest first. Unknown isolation may be none and ranks below it, because it guarantees
// the least.
func Strength(i gpuinfo.Isolation) int {
	switch i {
	case gpuinfo.Hardware:
		return 3
	case gpuinfo.Limit:
		return 2
	case gpuinfo.NoIsolation:
		return 1
	}
	return 0
}
