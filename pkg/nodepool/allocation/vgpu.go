package allocation

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

const (
	hamiAllocated  = "hami.io/vgpu-devices-allocated"
	hamiToAllocate = "hami.io/vgpu-devices-to-allocate"
	volcanoIDs     = "volcano.sh/vgpu-ids-new"
)

// VGPUScheduler is a scheduler that assigns vGPUs: shares of cards, each with memory and a percentage of cores.
type VGPUScheduler struct {
	// Name is a word for messages and sources.
	Name string
	// Count, Memory and Cores are the resources that pods request: shares, MiB and percent of a card's cores.
	// Percentage requests memory in percent of a card's; empty if there is no such resource.
	Count, Memory, Cores, Percentage string
	// records are the annotations in which it records the cards of a pod, the first that has a record counts.
	records []string
}

// HAMi and Volcano record cards in the same form.
var (
	HAMi = VGPUScheduler{
		Name: "hami", Count: gpuinfo.NvidiaGPU, Memory: gpuinfo.HAMiMemory, Cores: gpuinfo.HAMiCores,
		Percentage: gpuinfo.HAMiMemoryPercentage, records: []string{hamiAllocated, hamiToAllocate},
	}
	Volcano = VGPUScheduler{
		Name: "volcano", Count: gpuinfo.VolcanoNumber, Memory: gpuinfo.VolcanoMemory, Cores: gpuinfo.VolcanoCores,
		records: []string{volcanoIDs},
	}
)

// Held adds up what pods were assigned of the cards with these UUIDs: UUID,type,MiB,cores for each card, with a colon
// after each and a semicolon between containers. A pod without a record holds what it requests, or all of a card if it
// requests no memory. The result is nil while the pods are unknown.
func (v VGPUScheduler) Held(pods []Pod, cards []string) *ByCard[string] {
	if pods == nil {
		return nil
	}
	held := &ByCard[string]{}
	for _, pod := range pods {
		if pod.Requests[v.Count] == 0 && pod.Requests[v.Memory] == 0 {
			continue
		}
		record, recorded := v.record(pod, cards)
		for card, share := range record {
			held.add(card, share)
		}
		if !recorded {
			held.addUnrecorded(pod, v.records[0], v.requested(pod))
		}
	}
	return held
}

// requested returns what a pod without a record holds of a card.
func (v VGPUScheduler) requested(pod Pod) Share {
	const allOfACard = 1 << 40
	asked := Share{Shares: 1, Memory: pod.Requests[v.Memory], Cores: pod.Requests[v.Cores]}
	switch percent := pod.Requests[v.Percentage]; {
	case asked.Memory > 0:
	case percent > 0 && v.Percentage != "":
		asked.Percent = percent
	default:
		asked.Memory = allOfACard
	}
	return asked
}

// record returns what a pod was assigned on each card. Anyone who can create a pod can write its annotations, so an
// implausible record is ignored: a negative amount would make room for others, and a card that the node does not have
// would place the pod nowhere.
func (v VGPUScheduler) record(pod Pod, cards []string) (record map[string]Share, recorded bool) {
	for _, key := range v.records {
		record = map[string]Share{}
		for entry := range strings.FieldsFuncSeq(pod.Annotations[key], betweenShares) {
			card, share, ok := vgpuShare(entry)
			if !ok || !slices.Contains(cards, card) {
				return nil, false
			}
			record[card] = record[card].plus(share)
		}
		if len(record) > 0 {
			return record, true
		}
	}
	return nil, false
}

// Cards returns the UUIDs of cards in the records of pods, sorted.
func (v VGPUScheduler) Cards(pods []Pod) []string {
	found := map[string]bool{}
	for _, pod := range pods {
		for _, key := range v.records {
			for entry := range strings.FieldsFuncSeq(pod.Annotations[key], betweenShares) {
				if card, _, ok := vgpuShare(entry); ok && card != "" {
					found[card] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// betweenShares separates the shares of a record.
func betweenShares(c rune) bool { return c == ':' || c == ';' }

// vgpuShare reads UUID,type,MiB,cores. If HAMi partitions the card, the instance follows the UUID in brackets
// (docs/reference/facts.md#mig-instances-of-hami).
func vgpuShare(entry string) (card string, s Share, ok bool) {
	fields := strings.Split(entry, ",")
	if len(fields) < 4 {
		return "", Share{}, false
	}
	memory, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return "", Share{}, false
	}
	cores, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || min(memory, cores) < 0 || max(memory, cores) > mostAmount {
		return "", Share{}, false
	}
	card, _, _ = strings.Cut(fields[0], "[")
	return card, Share{Shares: 1, Memory: memory, Cores: cores}, true
}
