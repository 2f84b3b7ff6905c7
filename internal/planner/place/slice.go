package place

import (
	"cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// SliceRequirement is what an item requires of its GPUs. The zero value requires nothing.
type SliceRequirement struct {
	// Gpu is the fraction of one GPU that the requirement applies to: 1 for whole GPUs.
	Gpu raydemand.Amount
	// Memory is in bytes, Compute a fraction of a card.
	Memory    int64
	Compute   float64
	Isolation nodepool.RequiredIsolation
}

// sliceRequirementOf combines a request's requirement with the minimum of the RayCluster for all work on GPUs. A
// requirement without isolation excludes oversubscribed GPUs, unless the RayCluster accepts any.
func sliceRequirementOf(r *raydemand.Request, required nodepool.RequiredIsolation) SliceRequirement {
	gpus := r.Bundle[raydemand.GPU]
	if gpus <= 0 || r.Slice == nil && !isRequired(required) {
		return SliceRequirement{}
	}
	need := SliceRequirement{Gpu: min(gpus, raydemand.One), Isolation: required}
	if own := r.Slice; own != nil {
		need.Memory, need.Compute = own.Memory, own.ComputeFraction
		need.Isolation = cmp.Or(nodepool.RequiredIsolation(own.Isolation), required, nodepool.RequireLimit)
	}
	return need
}

func isRequired(required nodepool.RequiredIsolation) bool {
	return required != "" && required != nodepool.AnyIsolation
}

// asksForSlices reports whether any demand has requirements for GPUs. If not, slices do not affect the plan.
func asksForSlices(s *model.Snapshot) bool {
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

// shortfall is what a slice lacks.
type shortfall uint8

const (
	enough shortfall = iota
	TooOpen
	TooLittleMemory
	tooLittleCompute
)

// Allows reports whether a GPU of this slice meets the requirement; nil is an unknown GPU.
func (n SliceRequirement) Allows(s *model.Slice) bool { return n.Gpu == 0 || n.Shortfall(s) == enough }

// Shortfall checks isolation, memory and compute in this order. Unknown values do not meet the requirement.
func (n SliceRequirement) Shortfall(s *model.Slice) shortfall {
	if s == nil {
		s = &model.Slice{}
	}
	const rounding = 1e-9
	switch {
	case isRequired(n.Isolation) && !n.Isolation.Allows(s.Isolation):
		return TooOpen
	case n.Memory > 0 && (s.MemoryMiB == nil || n.Share(*s.MemoryMiB<<20) < n.Memory):
		return TooLittleMemory
	case n.Compute > 0 && (s.ComputeFraction == nil || *s.ComputeFraction*n.Gpu.Float()+rounding < n.Compute):
		return tooLittleCompute
	}
	return enough
}

// Share returns the part of an amount that belongs to the requested fraction of a GPU.
func (n SliceRequirement) Share(whole int64) int64 {
	if n.Gpu == raydemand.One {
		return whole
	}
	return int64(float64(whole) * n.Gpu.Float())
}

// compare orders the requirements that are harder to meet first.
func (n SliceRequirement) compare(other SliceRequirement) int {
	strict := func(n SliceRequirement) int {
		switch n.Isolation {
		case nodepool.RequireHardware:
			return 2
		case nodepool.RequireLimit:
			return 1
		}
		return 0
	}
	perGPU := func(n SliceRequirement, amount float64) float64 { return amount / max(n.Gpu.Float(), 1e-4) }
	return cmp.Or(
		cmp.Compare(perGPU(other, float64(other.Memory)), perGPU(n, float64(n.Memory))),
		cmp.Compare(perGPU(other, other.Compute), perGPU(n, n.Compute)),
		cmp.Compare(strict(other), strict(n)),
	)
}
