package fleet

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MemoryShare returns the memory of a slice as a share of the largest one in any group; 1 if unknown.
func (r *Fleet) MemoryShare(s *model.Slice) float64 {
	if s == nil || s.MemoryMiB == nil || r.largestSlice == 0 {
		return 1
	}
	return float64(*s.MemoryMiB) / float64(r.largestSlice)
}

// SizeOn returns the size by which node classes are sorted, tightest first. With slice requirements, smaller slices
// come before larger ones.
func (r *Fleet) SizeOn(s *vector.Shape, free vector.Vector) float64 {
	size := r.Size(free)
	if r.Sliced {
		if at, known := r.Index[raydemand.GPU]; known {
			size -= free[at].Float() * (1 - r.MemoryShare(r.SliceOf(s)))
		}
	}
	return size
}
