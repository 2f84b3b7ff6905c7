package nodegpu

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/allocation"
)

// gpuMemoryCards returns the cards of a node whose memory ACK or gpushare shares. The cards of a node are alike.
func (r *reading) gpuMemoryCards() []Card {
	perCard, known := r.gpus.UnitsPerCard[gpuinfo.AliyunMemory]
	if r.gpus.Kind != gpuinfo.GPUMemory || !known || r.gpus.Cards == nil || r.node.Pods == nil ||
		*r.gpus.Cards > mostCards {
		return nil
	}
	held := allocation.GPUMemory(r.node.Pods, int(*r.gpus.Cards))
	r.unrecorded(held.Unrecorded(int(*r.gpus.Cards)))
	cards := make([]Card, *r.gpus.Cards)
	for i := range cards {
		g := held.Of(i)
		left := max(perCard-g.Memory, 0)
		cards[i] = Card{Index: &i, MemoryMiB: r.gpus.CardMemoryMiB, FreeUnits: &left, Source: "gpu-mem"}
		if unit := r.gpus.MemoryMiB[gpuinfo.AliyunMemory]; unit > 0 {
			total, free := perCard*unit, left*unit
			cards[i].MemoryMiB, cards[i].FreeMiB = &total, &free
		}
		if r.gpus.Units[gpuinfo.AliyunCores] > 0 {
			cores := max(100-g.Cores, 0)
			cards[i].FreeCores = &cores
		}
	}
	return cards
}
