package why

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
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
	if declared.Times(it.Need, 1) == 0 || !it.Slice.Allows(&device) {
		return ""
	}
	return fmt.Sprintf("; group %s declares %s GPUs for %d × %s: set num-gpus to %d, so that each GPU is a whole "+
		"device, which is enough", g.Name, gpus, devices, g.Pools[0].Resource, devices)
}
