package vector

import (
	"cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// SliceRequirement is what an item asks of the GPUs behind it. The zero value asks for nothing.
type SliceRequirement struct {
	// Gpu is how much of one GPU the rest is asked of: all of it where whole ones are asked for.
	Gpu raydemand.Amount
	// Memory is in bytes, compute a part of a card.
	Memory    int64
	Compute   float64
	Isolation nodepool.RequiredIsolation
}

// sliceRequirementOf joins a request's own requirement with what the RayCluster requires of all work on GPUs. A
// requirement without isolation never gets what others oversubscribe, unless the RayCluster says that any will do.
func sliceRequirementOf(r *raydemand.Request, required nodepool.RequiredIsolation) SliceRequirement {
	gpus := r.Bundle[raydemand.GPU]
	if gpus <= 0 || r.Slice == nil && !isRequired(required) {
		return SliceRequirement{}
	}
	need := SliceRequirement{Gpu: min(gpus, raydemand.One), Isolation: required}
	if wish := r.Slice; wish != nil {
		need.Memory, need.Compute = wish.Memory, wish.ComputeFraction
		need.Isolation = cmp.Or(nodepool.RequiredIsolation(wish.Isolation), required, nodepool.RequireLimit)
	}
	return need
}

func isRequired(required nodepool.RequiredIsolation) bool {
	return required != "" && required != nodepool.AnyIsolation
}

// asksForSlices reports whether any demand asks more of GPUs than their number; without, nothing in a plan depends on
// slices.
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

// shortfall is in what a slice is not enough.
type shortfall uint8

const (
	enough shortfall = iota
	TooOpen
	TooLittleMemory
	tooLittleCompute
)

// Allows reports whether a GPU of this slice gives what is needed; nil is one of which nothing is known.
func (n SliceRequirement) Allows(s *model.Slice) bool { return n.Gpu == 0 || n.Shortfall(s) == enough }

// Shortfall looks at isolation, memory and compute in this order. What is not known is not enough.
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

// Share is the part of an amount that falls to the part of a GPU that is asked for.
func (n SliceRequirement) Share(whole int64) int64 {
	if n.Gpu == raydemand.One {
		return whole
	}
	return int64(float64(whole) * n.Gpu.Float())
}

// compare orders what is harder to serve first.
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
