package nodegpu

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/allocation"
)

// koordinatorCards returns the cards of a node whose resources Koordinator announces in percent, 100 for each card.
// FreeUnits is the percentage of the card's memory that is free.
func (r *reading) koordinatorCards() []Card {
	count := max(r.gpus.Units[gpuinfo.KoordinatorMemoryRatio], r.gpus.Units[gpuinfo.KoordinatorCores],
		r.gpus.Units[allocation.KoordinatorBoth]) / 100
	if r.node.Pods == nil || count <= 0 || count > mostCards {
		return nil
	}
	held := allocation.Koordinator(r.node.Pods, int(count))
	r.unrecorded(held.Unrecorded(int(count)))
	cards := make([]Card, count)
	for i := range cards {
		g := held.Of(i)
		memory, cores := max(100-g.Percent, 0), max(100-g.Cores, 0)
		cards[i] = Card{Index: &i, MemoryMiB: r.gpus.CardMemoryMiB, FreeUnits: &memory, FreeCores: &cores,
			Source: "koordinator"}
		if r.gpus.CardMemoryMiB != nil {
			free := *r.gpus.CardMemoryMiB * memory / 100
			cards[i].FreeMiB = &free
		}
	}
	return cards
}
