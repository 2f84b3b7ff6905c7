package cost

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Where demand has slice requirements, what serves it with less memory behind its GPUs is the better of two as cheap,
// then what does with less compute, then what leaves more large instances possible on the cards. It is a bias of the
// costs, too small to outweigh a price: all of a plan that goes by costs goes by it.
const (
	memoryBias  = 1e-5
	computeBias = 1e-6
	blockBias   = 1e-7
)

// gpusOf is how many GPUs one replica of a group has.
func (p rater) gpusOf(i int) float64 {
	g := &p.Groups[i]
	return g.Resources.Has(raydemand.GPU).Float() * float64(g.Hosts)
}

// sliceDiscount is what one replica is worth less because its GPUs are slices. Where prices are unknown a GPU is worth
// what its memory is of the largest: a seventh of a card does not cost what a card does.
func (p rater) sliceDiscount(i int) float64 {
	if !p.Sliced {
		return 0
	}
	return vector.AcceleratorWorth * p.gpusOf(i) * (1 - p.MemoryShare(p.Groups[i].Slice))
}

// addSliceBias adds to the costs of groups what speaks against their slices.
func (p rater) addSliceBias(cost []float64) {
	if !p.Sliced {
		return
	}
	var memory, compute, blocks float64 // the most of one replica
	for i := range p.Groups {
		if s := p.Groups[i].Slice; s != nil {
			memory = max(memory, model.AmountOr(s.MemoryMiB, 0)*p.gpusOf(i))
			compute = max(compute, model.AmountOr(s.ComputeFraction, 0)*p.gpusOf(i))
			blocks = max(blocks, model.AmountOr(s.Blocks, 0)*p.gpusOf(i))
		}
	}
	scale := 0.0
	for _, c := range cost {
		if c > 0 && (scale == 0 || c < scale) {
			scale = c
		}
	}
	if scale == 0 {
		scale = 1
	}
	for i := range p.Groups {
		cost[i] += scale * p.bias(i, memory, compute, blocks)
	}
}

// bias of one replica. What is not known counts as the most.
func (p rater) bias(i int, memory, compute, blocks float64) (sum float64) {
	s, gpus := p.Groups[i].Slice, p.gpusOf(i)
	if gpus == 0 {
		return 0
	}
	if s == nil {
		s = &model.Slice{}
	}
	add := func(bias, most, has float64) {
		if most > 0 {
			sum += bias * has / most
		}
	}
	add(memoryBias, memory, model.AmountOr(s.MemoryMiB, memory/gpus)*gpus)
	add(computeBias, compute, model.AmountOr(s.ComputeFraction, compute/gpus)*gpus)
	add(blockBias, blocks, model.AmountOr(s.Blocks, 0)*gpus)
	return sum
}
