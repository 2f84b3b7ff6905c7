package cost

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// If demand has slice requirements, then of two plans with equal cost the better one uses less GPU memory, then less
// compute, then leaves room for more large instances on the cards. It is a bias of the costs, too small to outweigh a
// price, so every comparison of costs takes it into account.
const (
	memoryBias  = 1e-5
	computeBias = 1e-6
	blockBias   = 1e-7
)

// gpusOf returns the number of GPUs in one replica of a group.
func (p rater) gpusOf(i int) float64 {
	g := &p.Groups[i]
	return g.Resources.Has(raydemand.GPU).Float() * float64(g.Hosts)
}

// sliceDiscount is how much less one replica is worth because its GPUs are slices. Without prices, a GPU is worth its
// share of the largest GPU's memory: a seventh of a card costs less than a card.
func (p rater) sliceDiscount(i int) float64 {
	if !p.Sliced {
		return 0
	}
	return vector.AcceleratorWorth * p.gpusOf(i) * (1 - p.MemoryShare(p.Groups[i].Slice))
}

// addSliceBias adds the slice bias to the costs of groups.
func (p rater) addSliceBias(cost []float64) {
	if !p.Sliced {
		return
	}
	var memory, compute, blocks float64 // the maximum of one replica
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

// bias returns the bias of one replica. An unknown value counts as the maximum.
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
