package model

import (
	"cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// SliceNeed is what work requires of each of its GPUs, or of a fraction of one. The zero value requires nothing.
type SliceNeed struct {
	// Gpu is the fraction of one GPU that the requirement applies to: 1 for whole GPUs.
	Gpu raydemand.Amount
	// Memory is in bytes, Compute a fraction of a card.
	Memory    int64
	Compute   float64
	Isolation nodepool.RequiredIsolation
}

// SliceNeedOf combines a request's requirement with the minimum of the RayCluster for all work on GPUs. A
// requirement without isolation excludes oversubscribed GPUs, unless the RayCluster accepts any.
func SliceNeedOf(r *raydemand.Request, required nodepool.RequiredIsolation) SliceNeed {
	gpus := r.Bundle[raydemand.GPU]
	if gpus <= 0 || r.Slice == nil && !isRequired(required) {
		return SliceNeed{}
	}
	need := SliceNeed{Gpu: min(gpus, raydemand.One), Isolation: required}
	if own := r.Slice; own != nil {
		need.Memory, need.Compute = own.Memory, own.ComputeFraction
		need.Isolation = cmp.Or(nodepool.RequiredIsolation(own.Isolation), required, nodepool.RequireLimit)
	}
	return need
}

func isRequired(required nodepool.RequiredIsolation) bool {
	return required != "" && required != nodepool.AnyIsolation
}

// AsksForSlices reports whether any demand has requirements for GPUs. If not, slices do not affect the plan.
func (s *Snapshot) AsksForSlices() bool {
	if isRequired(s.Isolation) {
		return true
	}
	for _, requests := range s.RequestLists() {
		for i := range requests {
			if requests[i].Slice != nil {
				return true
			}
		}
	}
	return false
}

// Shortfall is what a slice lacks.
type Shortfall uint8

// What a slice lacks, in the order in which it is checked.
const (
	Enough Shortfall = iota
	TooOpen
	TooLittleMemory
	TooLittleCompute
)

// Allows reports whether a GPU of this slice meets the requirement; nil is an unknown GPU.
func (n SliceNeed) Allows(s *Slice) bool { return n.Gpu == 0 || n.Shortfall(s) == Enough }

// Shortfall checks isolation, memory and compute in this order. Unknown values do not meet the requirement.
func (n SliceNeed) Shortfall(s *Slice) Shortfall {
	if s == nil {
		s = &Slice{}
	}
	const rounding = 1e-9
	switch {
	case isRequired(n.Isolation) && !n.Isolation.Allows(s.Isolation):
		return TooOpen
	case n.Memory > 0 && (s.MemoryMiB == nil || n.Share(*s.MemoryMiB<<20) < n.Memory):
		return TooLittleMemory
	case n.Compute > 0 && (s.ComputeFraction == nil || *s.ComputeFraction*n.Gpu.Float()+rounding < n.Compute):
		return TooLittleCompute
	}
	return Enough
}

// Share returns the part of an amount that belongs to the requested fraction of a GPU.
func (n SliceNeed) Share(whole int64) int64 {
	one, part := int64(raydemand.One), int64(n.Gpu)
	return whole/one*part + whole%one*part/one
}

// Compare orders the requirements that are harder to meet first.
func (n SliceNeed) Compare(other SliceNeed) int {
	strict := func(n SliceNeed) int {
		switch n.Isolation {
		case nodepool.RequireHardware:
			return 2
		case nodepool.RequireLimit:
			return 1
		}
		return 0
	}
	perGPU := func(n SliceNeed, amount float64) float64 { return amount / max(n.Gpu.Float(), 1e-4) }
	return cmp.Or(
		cmp.Compare(perGPU(other, float64(other.Memory)), perGPU(n, float64(n.Memory))),
		cmp.Compare(perGPU(other, other.Compute), perGPU(n, n.Compute)),
		cmp.Compare(strict(other), strict(n)),
	)
}
