package reasons

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// missedBy explains how a slice falls short of a requirement.
func missedBy(n vector.SliceRequirement, s *model.Slice) (model.Reason, bool) {
	if n.Allows(s) {
		return model.Reason{}, false
	}
	if s == nil {
		s = &model.Slice{}
	}
	switch n.Shortfall(s) {
	case vector.TooOpen:
		return isolationMiss(n, s), true
	case vector.TooLittleMemory:
		if s.MemoryMiB == nil {
			return model.Reason{
				Code:    model.CodeSliceUnknown,
				Message: fmt.Sprintf("the memory of its %s is unknown, needs %s", s.Name(), phrase.Memory(n.Memory)),
			}, true
		}
		return model.Reason{
			Code: model.CodeSliceTooSmall,
			Message: fmt.Sprintf(
				"%s%s has %s, needs %s",
				partOf(n),
				s.Name(),
				phrase.Memory(n.Share(*s.MemoryMiB<<20)),
				phrase.Memory(n.Memory),
			),
		}, true
	}
	if s.ComputeFraction == nil {
		return model.Reason{
			Code: model.CodeSliceUnknown,
			Message: fmt.Sprintf(
				"the compute of its %s is unknown, needs %s of a card",
				s.Name(),
				phrase.Fraction(n.Compute),
			),
		}, true
	}
	has, needs := phrase.Fractions(*s.ComputeFraction*n.Gpu.Float(), n.Compute)
	return model.Reason{
		Code:    model.CodeSliceTooSmall,
		Message: fmt.Sprintf("%s%s has %s of a card's compute, needs %s", partOf(n), s.Name(), has, needs),
	}, true
}

func isolationMiss(n vector.SliceRequirement, s *model.Slice) model.Reason {
	switch s.Isolation {
	case gpuinfo.Limit:
		return model.Reason{
			Code:    model.CodeIsolation,
			Message: fmt.Sprintf("its %s is isolated by a software limit, needs %s isolation", s.Name(), n.Isolation),
		}
	case gpuinfo.NoIsolation:
		return model.Reason{
			Code: model.CodeIsolation,
			Message: fmt.Sprintf(
				"its %s shares a card without isolation, needs %s isolation",
				s.Name(),
				n.Isolation,
			),
		}
	}
	return model.Reason{
		Code:    model.CodeSliceUnknown,
		Message: fmt.Sprintf("the isolation of its %s is unknown, needs %s isolation", s.Name(), n.Isolation),
	}
}

func partOf(n vector.SliceRequirement) string {
	if n.Gpu == raydemand.One {
		return ""
	}
	return n.Gpu.String() + " of "
}

// partOfSlice returns what a fraction of a GPU amounts to in a group: " (0.5 of a slice 1g.10gb, 4.75 GiB)". It returns
// an empty string for whole GPUs, or if the memory is unknown.
func partOfSlice(g *fleet.Group, it *vector.Item) string {
	gpus := it.Request.Bundle[raydemand.GPU]
	if g.Slice == nil || g.Slice.MemoryMiB == nil || gpus <= 0 || gpus >= raydemand.One {
		return ""
	}
	n := vector.SliceRequirement{Gpu: gpus}
	return fmt.Sprintf(" (%s of a %s, %s)", gpus, g.Slice.Name(), phrase.Memory(n.Share(*g.Slice.MemoryMiB<<20)))
}

// SliceFindings reports, once, that slice requirements cannot be evaluated, because the GPUs of no group are known, or
// nothing proves what they are.
func (w *Writer) SliceFindings() []raydemand.Finding {
	if !w.Sliced {
		return nil
	}
	groups := 0
	for i := range w.Groups {
		if s := w.Groups[i].Slice; s != nil && s.Kind != gpuinfo.WholeUnproven && s.Kind != gpuinfo.MIGUnproven {
			return nil
		}
		if w.Groups[i].Resources.Has(raydemand.GPU) > 0 {
			groups++
		}
	}
	if groups == 0 {
		return nil
	}
	return []raydemand.Finding{
		{
			Code:     model.FindingSlicesUnknown,
			Severity: raydemand.Warning,
			Object:   "snapshot",
			Field:    "groups",
			Seen:     fmt.Sprintf("%d with GPUs", groups),
			Why: "nothing proves what the GPUs of any group are, so demand with requirements for GPU memory, compute " +
				"or isolation is not served; other demand is planned by the resources that groups declare",
			Fix: "let Heliostat read nodes (in a snapshot file: kubeNodes beside rayCluster, or slice in each group)" +
				"; if it reads them, run GPU feature discovery there, or set --resource NAME=KIND: `autoscaler " +
				"nodepools` shows what the nodes prove",
		},
	}
}
