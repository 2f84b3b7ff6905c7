package planner

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Slice is what one GPU of a group's pods is, as Ray counts GPUs: a card, a MIG instance, or a share of either. What is not known is nil,
// empty or unknown, and is never enough for a request that asks for it.
type Slice struct {
	Kind gpuinfo.Kind `json:"kind"`
	// MemoryMiB is the memory behind one GPU, no more than the worst node gives. ComputeFraction is the part of one physical card's
	// compute that it is sure of, 0 to 1.
	MemoryMiB       *int64            `json:"memoryMiB"`
	ComputeFraction *float64          `json:"computeFraction"`
	Isolation       gpuinfo.Isolation `json:"isolation"`
	// Profile is the MIG profile, Product the model of the card as nodes name it.
	Profile string `json:"profile,omitempty"`
	Product string `json:"product,omitempty"`
	// Blocks is how many larger instances become impossible on the card that is best for it, as the cards are now, when one more is taken;
	// nil where no reading of single cards tells.
	Blocks *int64 `json:"blocks,omitempty"`
}

// name is for people: "slice 1g.5gb", "whole card", "time-sliced GPU".
func (s *Slice) name() string {
	switch {
	case s.Profile != "" && s.Kind == gpuinfo.MIG:
		return "slice " + s.Profile
	case s.Profile != "":
		return string(s.Kind) + " slice " + s.Profile
	case s.Kind == gpuinfo.Whole:
		return "whole card"
	case s.Kind == gpuinfo.MIG:
		return "MIG slice"
	case s.Kind == "" || s.Kind == gpuinfo.UnknownKind:
		return "GPU of unknown kind"
	case s.Kind == gpuinfo.TimeSliced:
		return "time-sliced GPU"
	}
	return string(s.Kind) + " share"
}

// String tells what is known: "slice 1g.10gb: 9.5 GiB, 0.143 of a card's compute, isolation hardware".
func (s *Slice) String() string {
	text := s.name()
	if s.Product != "" {
		text += " of " + s.Product
	}
	var parts []string
	if s.MemoryMiB != nil {
		parts = append(parts, memoryText(*s.MemoryMiB<<20))
	}
	if s.ComputeFraction != nil {
		parts = append(parts, fraction(*s.ComputeFraction)+" of a card's compute")
	}
	if s.Isolation != "" {
		parts = append(parts, "isolation "+string(s.Isolation))
	}
	return text + ": " + strings.Join(parts, ", ")
}

// key tells slices apart where it matters to a wish.
func (s *Slice) key() string {
	return fmt.Sprintf("%s %v %v %s %s", s.Kind, amountOr(s.MemoryMiB, -1), amountOr(s.ComputeFraction, -1), s.Isolation, s.Profile)
}

// nameOr is the name, or what to say where nothing is known.
func (s *Slice) nameOr(otherwise string) string {
	if s == nil {
		return otherwise
	}
	return s.name()
}

// SliceOf is what one GPU of a group is when a pod announces so many of them to Ray; nil where the group has none, or nothing tells.
func SliceOf(g nodepool.WorkerGroup, numGPUs raydemand.Amount) *Slice {
	var total int64
	for _, s := range g.Slices {
		total += s.UnitsPerPod
	}
	if numGPUs <= 0 || len(g.Slices) == 0 || len(g.Slices) > 1 && numGPUs != raydemand.Whole(total) {
		return nil // of several kinds of devices behind one number nobody can say which is meant
	}
	var least nodepool.Slice
	for i, s := range g.Slices {
		announced := numGPUs
		if len(g.Slices) > 1 {
			announced = raydemand.Whole(s.UnitsPerPod)
		}
		each := oneOf(s.Slice, announced, g.Pod.CardsAsked)
		if i == 0 {
			least = each
			continue
		}
		least = nodepool.Lesser(least, each)
		least.Blocks = nil // of several kinds none says how it lies on a card
	}
	made := newSlice(least)
	if made.blank() {
		return nil
	}
	return made
}

// blank reports whether nothing at all is known.
func (s *Slice) blank() bool {
	kind := s.Kind == "" || s.Kind == gpuinfo.UnknownKind
	return kind && nodepool.Strength(s.Isolation) == 0 && s.MemoryMiB == nil && s.ComputeFraction == nil && s.Profile+s.Product == ""
}

// oneOf is one GPU of a slice. Several devices behind one GPU are still told by one of them: no task can have the memory of two in one
// piece. Units of memory of one card add up.
func oneOf(s nodepool.Slice, numGPUs raydemand.Amount, cards int64) nodepool.Slice {
	s.MemoryMiB = measured(s)
	if s.Kind == gpuinfo.GPUMemory {
		s.UnitsPerPod /= max(cards, 1)
		numGPUs = max(numGPUs/raydemand.Amount(max(cards, 1)), raydemand.One)
	} else if numGPUs < raydemand.Whole(s.UnitsPerPod) {
		numGPUs = raydemand.Whole(s.UnitsPerPod)
	}
	s.MemoryMiB, s.ComputeFraction = s.Each(numGPUs)
	return s
}

func newSlice(s nodepool.Slice) *Slice {
	made := &Slice{Kind: s.Kind, Isolation: s.Isolation, MemoryMiB: s.MemoryMiB, ComputeFraction: s.ComputeFraction, Blocks: s.Blocks}
	if s.Profile != nil {
		made.Profile = *s.Profile
	}
	if s.Product != nil {
		made.Product = *s.Product
	}
	return made
}

// measured is the memory behind one unit. The round figure in a profile's name is more than any card gives, so for it stands the least that
// a known product does.
func measured(s nodepool.Slice) *int64 {
	if !s.Nominal || s.Profile == nil {
		return s.MemoryMiB
	}
	var least int64
	for _, product := range gpuinfo.Products() {
		if p, has := product.Profile(*s.Profile); has && p.Memory > 0 && (least == 0 || int64(p.Memory) < least) {
			least = int64(p.Memory)
		}
	}
	if least == 0 {
		return nil
	}
	return &least
}

// sliceNeed is what an item asks of the GPUs behind it. The zero value asks for nothing.
type sliceNeed struct {
	// gpu is how much of one GPU the rest is asked of: all of it where whole ones are asked for.
	gpu raydemand.Amount
	// memory is in bytes, compute a part of a card.
	memory    int64
	compute   float64
	isolation nodepool.RequiredIsolation
}

// sliceNeedOf joins a request's own wish with what the RayCluster requires of all work on GPUs. A wish that says no isolation never gets
// what others oversubscribe, unless the RayCluster says that any will do.
func sliceNeedOf(r *raydemand.Request, required nodepool.RequiredIsolation) sliceNeed {
	gpus := r.Bundle[raydemand.GPU]
	if gpus <= 0 || r.Slice == nil && !demanding(required) {
		return sliceNeed{}
	}
	need := sliceNeed{gpu: min(gpus, raydemand.One), isolation: required}
	if wish := r.Slice; wish != nil {
		need.memory, need.compute = wish.Memory, wish.ComputeFraction
		need.isolation = cmp.Or(nodepool.RequiredIsolation(wish.Isolation), required, nodepool.RequireLimit)
	}
	return need
}

func demanding(required nodepool.RequiredIsolation) bool {
	return required != "" && required != nodepool.AnyIsolation
}

// wishes reports whether any demand asks more of GPUs than their number; without, nothing in a plan depends on slices.
func wishes(s *Snapshot) bool {
	if demanding(s.Isolation) {
		return true
	}
	for _, requests := range s.requestLists() {
		for i := range requests {
			if requests[i].Slice != nil {
				return true
			}
		}
	}
	return false
}

// shortfall is in what a slice is not enough.
type shortfall uint8

const (
	enough shortfall = iota
	tooOpen
	tooLittleMemory
	tooLittleCompute
)

// allows reports whether a GPU of this slice gives what is needed; nil is one of which nothing is known.
func (n sliceNeed) allows(s *Slice) bool { return n.gpu == 0 || n.shortfall(s) == enough }

// shortfall looks at isolation, memory and compute in this order. What is not known is not enough.
func (n sliceNeed) shortfall(s *Slice) shortfall {
	if s == nil {
		s = &Slice{}
	}
	const rounding = 1e-9
	switch {
	case demanding(n.isolation) && !n.isolation.Allows(s.Isolation):
		return tooOpen
	case n.memory > 0 && (s.MemoryMiB == nil || n.share(*s.MemoryMiB<<20) < n.memory):
		return tooLittleMemory
	case n.compute > 0 && (s.ComputeFraction == nil || *s.ComputeFraction*n.gpu.Float()+rounding < n.compute):
		return tooLittleCompute
	}
	return enough
}

// miss says in what a slice falls short.
func missedBy(n sliceNeed, s *Slice) (Reason, bool) {
	if n.allows(s) {
		return Reason{}, false
	}
	if s == nil {
		s = &Slice{}
	}
	switch n.shortfall(s) {
	case tooOpen:
		return isolationMiss(n, s), true
	case tooLittleMemory:
		if s.MemoryMiB == nil {
			return Reason{CodeSliceUnknown, fmt.Sprintf("the memory of its %s is not known, needs %s", s.name(), memoryText(n.memory))}, true
		}
		return Reason{CodeSliceTooSmall, fmt.Sprintf("%s%s has %s, needs %s", partOf(n), s.name(), memoryText(n.share(*s.MemoryMiB<<20)), memoryText(n.memory))}, true
	}
	if s.ComputeFraction == nil {
		return Reason{CodeSliceUnknown, fmt.Sprintf("the compute of its %s is not known, needs %s of a card", s.name(), fraction(n.compute))}, true
	}
	has, needs := fractions(*s.ComputeFraction*n.gpu.Float(), n.compute)
	return Reason{CodeSliceTooSmall, fmt.Sprintf("%s%s has %s of a card's compute, needs %s", partOf(n), s.name(), has, needs)}, true
}

func isolationMiss(n sliceNeed, s *Slice) Reason {
	switch s.Isolation {
	case gpuinfo.Limit:
		return Reason{CodeIsolation, fmt.Sprintf("its %s is kept apart by a limit in software, needs %s isolation", s.name(), n.isolation)}
	case gpuinfo.NoIsolation:
		return Reason{CodeIsolation, fmt.Sprintf("its %s shares a card with others and nothing keeps them apart, needs %s isolation", s.name(), n.isolation)}
	}
	return Reason{CodeSliceUnknown, fmt.Sprintf("what keeps its %s apart from others is not known, needs %s isolation", s.name(), n.isolation)}
}

// share is the part of an amount that falls to the part of a GPU that is asked for.
func (n sliceNeed) share(whole int64) int64 {
	if n.gpu == raydemand.One {
		return whole
	}
	return int64(float64(whole) * n.gpu.Float())
}

func partOf(n sliceNeed) string {
	if n.gpu == raydemand.One {
		return ""
	}
	return n.gpu.String() + " of "
}

func memoryText(bytes int64) string { return quantity(raydemand.Memory, raydemand.Whole(bytes)) }

// fractions writes two numbers that differ with as many digits as it takes to see it.
func fractions(a, b float64) (string, string) {
	for digits := 3; digits < 9; digits++ {
		x, y := strconv.FormatFloat(a, 'g', digits, 64), strconv.FormatFloat(b, 'g', digits, 64)
		if x != y {
			return x, y
		}
	}
	return fraction(a), fraction(b)
}

func fraction(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }

// compare orders what is harder to serve first.
func (n sliceNeed) compare(other sliceNeed) int {
	strict := func(n sliceNeed) int {
		switch n.isolation {
		case nodepool.RequireHardware:
			return 2
		case nodepool.RequireLimit:
			return 1
		}
		return 0
	}
	perGPU := func(n sliceNeed, amount float64) float64 { return amount / max(n.gpu.Float(), 1e-4) }
	return cmp.Or(
		cmp.Compare(perGPU(other, float64(other.memory)), perGPU(n, float64(n.memory))),
		cmp.Compare(perGPU(other, other.compute), perGPU(n, n.compute)),
		cmp.Compare(strict(other), strict(n)),
	)
}

// part tells what a fraction of a GPU comes to on a group: " (0.5 of a slice 1g.10gb, 4.75 GiB)"; nothing of whole ones, or where the
// memory is not known.
func partOfSlice(g *group, it *item) string {
	gpus := it.request.Bundle[raydemand.GPU]
	if g.Slice == nil || g.Slice.MemoryMiB == nil || gpus <= 0 || gpus >= raydemand.One {
		return ""
	}
	n := sliceNeed{gpu: gpus}
	return fmt.Sprintf(" (%s of a %s, %s)", gpus, g.Slice.name(), memoryText(n.share(*g.Slice.MemoryMiB<<20)))
}

// FindingSlicesUnknown says that demand asks for memory, compute or isolation of its GPUs, and of no group it is known what they are.
const FindingSlicesUnknown = "slices-unknown"

// sliceFindings tells once that wishes cannot be weighed.
func (w *words) sliceFindings() []raydemand.Finding {
	if !w.sliced {
		return nil
	}
	groups := 0
	for i := range w.groups {
		if w.groups[i].Slice != nil {
			return nil
		}
		if w.groups[i].Resources.Has(raydemand.GPU) > 0 {
			groups++
		}
	}
	if groups == 0 {
		return nil
	}
	return []raydemand.Finding{{
		Code: FindingSlicesUnknown, Severity: raydemand.Warning, Object: "snapshot", Field: "groups", Seen: fmt.Sprintf("%d with GPUs", groups),
		Why: "of none is it known what its GPUs are, so demand that asks for memory, compute or isolation of them is served by none; all other is planned by what groups declare",
		Fix: "let the controller read nodes; offline, give kubeNodes beside rayCluster, or slice in each group",
	}}
}
