package planner

import (
	"cmp"
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
func wishes(s *model.Snapshot) bool {
	if demanding(s.Isolation) {
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
	tooOpen
	tooLittleMemory
	tooLittleCompute
)

// allows reports whether a GPU of this slice gives what is needed; nil is one of which nothing is known.
func (n sliceNeed) allows(s *model.Slice) bool { return n.gpu == 0 || n.shortfall(s) == enough }

// shortfall looks at isolation, memory and compute in this order. What is not known is not enough.
func (n sliceNeed) shortfall(s *model.Slice) shortfall {
	if s == nil {
		s = &model.Slice{}
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
func missedBy(n sliceNeed, s *model.Slice) (model.Reason, bool) {
	if n.allows(s) {
		return model.Reason{}, false
	}
	if s == nil {
		s = &model.Slice{}
	}
	switch n.shortfall(s) {
	case tooOpen:
		return isolationMiss(n, s), true
	case tooLittleMemory:
		if s.MemoryMiB == nil {
			return model.Reason{Code: model.CodeSliceUnknown, Message: fmt.Sprintf("the memory of its %s is not known, needs %s", s.Name(), phrase.Memory(n.memory))}, true
		}
		return model.Reason{Code: model.CodeSliceTooSmall, Message: fmt.Sprintf("%s%s has %s, needs %s", partOf(n), s.Name(), phrase.Memory(n.share(*s.MemoryMiB<<20)), phrase.Memory(n.memory))}, true
	}
	if s.ComputeFraction == nil {
		return model.Reason{Code: model.CodeSliceUnknown, Message: fmt.Sprintf("the compute of its %s is not known, needs %s of a card", s.Name(), phrase.Fraction(n.compute))}, true
	}
	has, needs := phrase.Fractions(*s.ComputeFraction*n.gpu.Float(), n.compute)
	return model.Reason{Code: model.CodeSliceTooSmall, Message: fmt.Sprintf("%s%s has %s of a card's compute, needs %s", partOf(n), s.Name(), has, needs)}, true
}

func isolationMiss(n sliceNeed, s *model.Slice) model.Reason {
	switch s.Isolation {
	case gpuinfo.Limit:
		return model.Reason{Code: model.CodeIsolation, Message: fmt.Sprintf("its %s is kept apart by a limit in software, needs %s isolation", s.Name(), n.isolation)}
	case gpuinfo.NoIsolation:
		return model.Reason{Code: model.CodeIsolation, Message: fmt.Sprintf("its %s shares a card with others and nothing keeps them apart, needs %s isolation", s.Name(), n.isolation)}
	}
	return model.Reason{Code: model.CodeSliceUnknown, Message: fmt.Sprintf("what keeps its %s apart from others is not known, needs %s isolation", s.Name(), n.isolation)}
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
	return fmt.Sprintf(" (%s of a %s, %s)", gpus, g.Slice.Name(), phrase.Memory(n.share(*g.Slice.MemoryMiB<<20)))
}

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
		Code: model.FindingSlicesUnknown, Severity: raydemand.Warning, Object: "snapshot", Field: "groups", Seen: fmt.Sprintf("%d with GPUs", groups),
		Why: "of none is it known what its GPUs are, so demand that asks for memory, compute or isolation of them is served by none; all other is planned by what groups declare",
		Fix: "let the controller read nodes; offline, give kubeNodes beside rayCluster, or slice in each group",
	}}
}
