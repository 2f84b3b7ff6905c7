package why

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sliceMiss explains how the GPUs of a shape fall short of an item's requirement.
func (d *decision) sliceMiss(it *place.Item, shape *place.Shape) model.Reason {
	n := it.Slice
	if at, known := d.Index[raydemand.GPU]; !known || shape.Total[at] == 0 || n.Allows(d.SliceOf(shape)) {
		return model.Reason{}
	}
	s, part := cmp.Or(d.SliceOf(shape), &model.Slice{}), ""
	if n.Gpu != raydemand.One {
		part = n.Gpu.String() + " of "
	}
	switch shortfall := n.Shortfall(s); {
	case shortfall == model.TooOpen && s.Isolation == gpuinfo.Limit:
		return tooOpen.with(s.Name(), "is isolated by a software limit", n.Isolation)
	case shortfall == model.TooOpen && s.Isolation == gpuinfo.NoIsolation:
		return tooOpen.with(s.Name(), "shares a card without isolation", n.Isolation)
	case shortfall == model.TooOpen:
		return sliceUnknown.with("isolation", s.Name(), n.Isolation+" isolation")
	case shortfall == model.TooLittleMemory && s.MemoryMiB == nil:
		return sliceUnknown.with("memory", s.Name(), model.Memory(n.Memory))
	case shortfall == model.TooLittleMemory:
		return sliceSmall.with(part, s.Name(), model.Memory(n.Share(*s.MemoryMiB<<20)), model.Memory(n.Memory))
	case s.ComputeFraction == nil:
		return sliceUnknown.with("compute", s.Name(), model.Fraction(n.Compute)+" of a card")
	}
	has, needs := model.Fractions(*s.ComputeFraction*n.Gpu.Float(), n.Compute)
	return sliceSmall.with(part, s.Name(), has+" of a card's compute", needs)
}

// partOfSlice returns what a fraction of a GPU amounts to in a group: " (0.5 of a slice 1g.10gb, 4.75 GiB)". It returns
// an empty string for whole GPUs, or if the memory is unknown.
func partOfSlice(g *place.Group, it *place.Item) string {
	gpus := it.Request.Bundle[raydemand.GPU]
	if g.Slice == nil || g.Slice.MemoryMiB == nil || gpus <= 0 || gpus >= raydemand.One {
		return ""
	}
	n := model.SliceNeed{Gpu: gpus}
	return fmt.Sprintf(" (%s of a %s, %s)", gpus, g.Slice.Name(), model.Memory(n.Share(*g.Slice.MemoryMiB<<20)))
}

// advised adds to a reason what the operator can do to serve an item if no group has large enough GPUs: declare fewer
// GPUs for the same devices. It adds nothing if something else is short too.
func (d *decision) advised(reason model.Reason, it *place.Item) model.Reason {
	if it.Request.Slice == nil || it.Slice.Memory == 0 && it.Slice.Compute == 0 || !d.onlyGPUsAreSmall(it) {
		return reason
	}
	var advice []string
	for i := range d.Groups {
		if text := d.overDeclared(i, it); text != "" {
			advice = append(advice, text)
		}
	}
	reason.Message = model.Join(reason.Message, model.List(advice))
	return reason
}

// onlyGPUsAreSmall reports whether no group has large enough slices, or only the pools limit the groups that do. If a
// group falls short only because a fraction of a card was written in decimals, nothing is short.
func (d *decision) onlyGPUsAreSmall(it *place.Item) (short bool) {
	const written = 0.001
	rounded := it.Slice
	rounded.Compute = max(rounded.Compute-written, 0)
	for i := range d.Groups {
		g := &d.Groups[i]
		switch reason := d.sliceMiss(it, g.Shape); {
		case g.Slice != nil && rounded.Allows(g.Slice) && !it.Slice.Allows(g.Slice):
			return false
		case said(reason):
			short = short || reason.Code == model.CodeSliceTooSmall
		case !it.Suits(g.Shape):
		case d.limit(i).Code != model.CodePoolCeiling:
			return false
		default:
			short = true
		}
	}
	return short
}

// suitsButSlice reports whether a new node of a group with these amounts could serve one bundle if each of its GPUs
// were large enough.
func suitsButSlice(it *place.Item, g *place.Group, total place.Vector) bool {
	return landing.FirstMatch(it.Request.Selectors, g.Labels) != place.NoMatch && total.Times(it.Need, 1) == 1
}

// overDeclared reports that a group declares more GPUs than it has devices, although one whole device would be enough.
func (d *decision) overDeclared(i int, it *place.Item) string {
	g := &d.Groups[i]
	if g.Slice == nil || len(g.Pools) == 0 || g.Slice.Kind != gpuinfo.Whole && g.Slice.Kind != gpuinfo.MIG ||
		it.Slice.Allows(g.Slice) {
		return ""
	}
	devices, gpus := g.Pools[0].Units, g.Resources[raydemand.GPU]
	if devices <= 0 || gpus <= raydemand.Whole(devices) {
		return ""
	}
	declared := slices.Clone(g.Shape.Total)
	declared[d.Index[raydemand.GPU]] = raydemand.Whole(devices)
	times, device := gpus.Float()/float64(devices), *g.Slice
	device.MemoryMiB = new(int64(model.AmountOr(device.MemoryMiB, 0) * times))
	device.ComputeFraction = new(model.AmountOr(device.ComputeFraction, 0) * times)
	if !suitsButSlice(it, g, declared) || !it.Slice.Allows(&device) {
		return ""
	}
	return fmt.Sprintf("group %s declares %s GPUs for %d × %s: set num-gpus to %d, so that each GPU is a whole "+
		"device, which is enough", g.Name, gpus, devices, g.Pools[0].Resource, devices)
}
