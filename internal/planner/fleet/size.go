package fleet

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MemoryShare is the memory of a slice as a part of the largest of all groups; 1 where it is not known.
func (r *Fleet) MemoryShare(s *model.Slice) float64 {
	if s == nil || s.MemoryMiB == nil || r.largestSlice == 0 {
		return 1
	}
	return float64(*s.MemoryMiB) / float64(r.largestSlice)
}

// SizeOn is size, by which node classes are offered, tightest first: where there are slice requirements, smaller slices
// before larger ones.
func (r *Fleet) SizeOn(s *vector.Shape, free vector.Vector) float64 {
	size := r.Size(free)
	if r.Sliced {
		if at, known := r.Index[raydemand.GPU]; known {
			size -= free[at].Float() * (1 - r.MemoryShare(r.SliceOf(s)))
		}
	}
	return size
}
