package nodegpu

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// unregisteredCards returns the cards of a node of HAMi or Volcano whose register is not shown, as in an excerpt: equal
// cards, with the identities that the records of its pods name.
func (r *reading) unregisteredCards() []Card {
	count, memory, known := r.alikeCards()
	if r.gpus.Kind != gpuinfo.VGPU || r.node.Pods == nil || !known ||
		r.node.Annotations[hamiRegister]+r.node.Annotations[volcanoRegister] != "" {
		return nil
	}
	source, names := "hami", []string{gpuinfo.NvidiaGPU, gpuinfo.HAMiMemory, gpuinfo.HAMiCores}
	annotations := []string{hamiAllocated, hamiToAllocate}
	if r.gpus.Units[gpuinfo.VolcanoNumber] > 0 {
		source, names = "volcano", []string{gpuinfo.VolcanoNumber, gpuinfo.VolcanoMemory, gpuinfo.VolcanoCores}
		annotations = []string{volcanoIDs}
	}
	ids := recordedCards(r.node.Pods, annotations)
	devices := make([]hamiDevice, count)
	for i := range devices {
		devices[i] = hamiDevice{
			Index:  i,
			Count:  r.gpus.Units[names[0]] / count,
			Memory: memory,
			Cores:  100,
			Health: true,
		}
		if i < len(ids) {
			devices[i].UUID = ids[i]
		}
	}
	cards := r.vgpuCards(source, devices, r.vgpuHoldings(devices, names[0], names[1], names[2], annotations...))
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

// recordedCards returns the identities of cards in the records of pods, sorted.
func recordedCards(pods []PodObject, annotations []string) []string {
	found := map[string]bool{}
	for _, pod := range pods {
		for _, key := range annotations {
			for entry := range strings.FieldsFuncSeq(pod.Annotations[key], betweenGrants) {
				if card, _, ok := vgpuGrant(entry); ok && card != "" {
					found[card] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
