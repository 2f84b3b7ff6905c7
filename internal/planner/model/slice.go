package model

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Slice is what one GPU of a group's pods is, as Ray counts GPUs: a card, a MIG instance, or a share of either. Unknown
// values are nil, empty or unknown, and never meet a requirement.
type Slice struct {
	Kind gpuinfo.Kind `json:"kind"`
	// MemoryMiB is the memory of one GPU on the worst node. ComputeFraction is the guaranteed fraction of one physical
	// card's compute, 0 to 1.
	MemoryMiB       *int64            `json:"memoryMiB"`
	ComputeFraction *float64          `json:"computeFraction"`
	Isolation       gpuinfo.Isolation `json:"isolation"`
	// Profile is the MIG profile. Product is the model of the card in the labels of nodes.
	Profile string `json:"profile,omitempty"`
	Product string `json:"product,omitempty"`
}

// Name returns a short description: "slice 1g.5gb", "whole card", "time-sliced GPU".
func (s *Slice) Name() string {
	switch {
	case s.Profile != "" && s.Kind == gpuinfo.MIG:
		return "slice " + s.Profile
	case s.Profile != "":
		return string(s.Kind) + " slice " + s.Profile
	case s.Kind == gpuinfo.Whole:
		return "whole card"
	case s.Kind == gpuinfo.WholeUnproven:
		return "whole card (unproven)"
	case s.Kind == gpuinfo.MIG:
		return "MIG slice"
	case s.Kind == gpuinfo.MIGUnproven:
		return "MIG slice (unproven)"
	case s.Kind == "" || s.Kind == gpuinfo.UnknownKind:
		return "GPU of unknown kind"
	case s.Kind == gpuinfo.TimeSliced:
		return "time-sliced GPU"
	case s.Kind == gpuinfo.MPS:
		return "GPU shared by MPS"
	}
	return string(s.Kind) + " share"
}

// String returns what is known: "slice 1g.10gb: 9.5 GiB, 0.143 of a card's compute, isolation hardware".
func (s *Slice) String() string {
	text := s.Name()
	if s.Product != "" {
		text += " of " + s.Product
	}
	var parts []string
	if s.MemoryMiB != nil {
		parts = append(parts, Memory(*s.MemoryMiB<<20))
	}
	if s.ComputeFraction != nil {
		parts = append(parts, Fraction(*s.ComputeFraction)+" of a card's compute")
	}
	if s.Isolation != "" {
		parts = append(parts, "isolation "+string(s.Isolation))
	}
	return text + ": " + strings.Join(parts, ", ")
}

// Key distinguishes slices that a requirement can distinguish.
func (s *Slice) Key() string {
	return fmt.Sprintf(
		"%s %v %v %s %s",
		s.Kind,
		AmountOr(s.MemoryMiB, -1),
		AmountOr(s.ComputeFraction, -1),
		s.Isolation,
		s.Profile,
	)
}

// NameOr returns the name, or a default if nothing is known.
func (s *Slice) NameOr(otherwise string) string {
	if s == nil {
		return otherwise
	}
	return s.Name()
}

// SliceOf returns what one GPU of a group is if a pod declares this many GPUs to Ray. It returns nil if the group has
// none, or if nothing is known.
func SliceOf(g nodepool.WorkerGroup, numGPUs raydemand.Amount) *Slice {
	var total int64
	for _, s := range g.Slices {
		total += s.UnitsPerPod
	}
	if numGPUs <= 0 || len(g.Slices) == 0 || len(g.Slices) > 1 && numGPUs != raydemand.Whole(total) {
		return nil // one number for several kinds of devices does not say which kind is meant
	}
	var least landing.Slice
	for i, s := range g.Slices {
		declared := numGPUs
		if len(g.Slices) > 1 {
			declared = raydemand.Whole(s.UnitsPerPod)
		}
		each := oneOf(s, declared, g.Pod.CardsAsked)
		if i == 0 {
			least = each
			continue
		}
		least = landing.Lesser(least, each)
	}
	made := newSlice(least)
	if made.blank() {
		return nil
	}
	return made
}

// blank reports whether nothing is known.
func (s *Slice) blank() bool {
	kind := s.Kind == "" || s.Kind == gpuinfo.UnknownKind
	return kind && landing.Strength(s.Isolation) == 0 && s.MemoryMiB == nil && s.ComputeFraction == nil &&
		s.Profile+s.Product == ""
}

// oneOf returns one GPU of a slice. Several devices behind one GPU count as one of them, because no task can use the
// memory of two in one piece. Units of memory of one card add up.
func oneOf(s landing.Slice, numGPUs raydemand.Amount, cards int64) landing.Slice {
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

func newSlice(s landing.Slice) *Slice {
	made := &Slice{
		Kind:            s.Kind,
		Isolation:       s.Isolation,
		MemoryMiB:       s.MemoryMiB,
		ComputeFraction: s.ComputeFraction,
	}
	if s.Profile != nil {
		made.Profile = *s.Profile
	}
	if s.Product != nil {
		made.Product = *s.Product
	}
	return made
}

// measured returns the memory of one unit. The rounded size in a profile's name is larger than on any card, so measured
// returns the smallest size of any known product instead.
func measured(s landing.Slice) *int64 {
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

func AmountOr[T int64 | float64](p *T, otherwise float64) float64 {
	if p == nil {
		return otherwise
	}
	return float64(*p)
}
