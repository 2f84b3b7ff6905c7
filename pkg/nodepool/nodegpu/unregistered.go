package nodegpu

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/allocation"
)

// unregisteredCards returns the cards of a node of HAMi or Volcano whose register is not shown, as in an excerpt: equal
// cards, with the identities that the records of its pods name.
func (r *reading) unregisteredCards() []Card {
	count, memory, known := r.alikeCards()
	if r.gpus.Kind != gpuinfo.VGPU || r.node.Pods == nil || !known ||
		r.node.Annotations[hamiRegister]+r.node.Annotations[volcanoRegister] != "" {
		return nil
	}
	scheduler := allocation.HAMi
	if r.gpus.Units[gpuinfo.VolcanoNumber] > 0 {
		scheduler = allocation.Volcano
	}
	ids := scheduler.Cards(r.node.Pods)
	devices := make([]hamiDevice, count)
	for i := range devices {
		devices[i] = hamiDevice{
			Index:  i,
			Count:  r.gpus.Units[scheduler.Count] / count,
			Memory: memory,
			Cores:  100,
			Health: true,
		}
		if i < len(ids) {
			devices[i].UUID = ids[i]
		}
	}
	cards := r.vgpuCards(scheduler, devices)
	for i := range cards {
		cards[i].Index = nil
	}
	return cards
}

// alikeCards returns the number of a node's cards and the memory of each, if both are known.
func (r *reading) alikeCards() (count, memory int64, known bool) {
	if r.gpus.Cards == nil || *r.gpus.Cards <= 0 || *r.gpus.Cards > mostCards {
		return 0, 0, false
	}
	memory, known = r.gpus.UnitsPerCard[gpuinfo.VolcanoMemory]
	for _, read := range []func() (int64, bool){
		r.gfdMemory, func() (int64, bool) { return memoryText(r.label(labelACKMemory)) },
	} {
		if !known {
			memory, known = read()
		}
	}
	return *r.gpus.Cards, memory, known
}
