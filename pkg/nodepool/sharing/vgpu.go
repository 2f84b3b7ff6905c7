package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// hamiDevice is one card as HAMi's agent registers it. Count is how many shares it may be split into. Memory is in MiB
// and Cores in percent; both are scaled if HAMi is configured to overcommit.
type hamiDevice struct {
	UUID   string `json:"id"`
	Index  int    `json:"index"`
	Count  int64  `json:"count"`
	Memory int64  `json:"devmem"`
	Cores  int64  `json:"devcore"`
	Type   string `json:"type"`
	Mode   string `json:"mode"`
	Health bool   `json:"health"`
}

func (d *hamiDevice) check() error {
	for _, amount := range []struct {
		what string
		n    int64
	}{{"shares", d.Count}, {"memory", d.Memory}, {"cores", d.Cores}, {"index", int64(d.Index)}} {
		if amount.n < 0 || amount.n > mostAmount {
			return fmt.Errorf("%s %d: want 0 or more", amount.what, amount.n)
		}
	}
	return nil
}

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

// unregisteredCards returns the cards of a node of HAMi or Volcano whose register is not shown, as in an excerpt: equal
// cards, with the identities that the records of its pods name.
func (r *reading) unregisteredCards() []Card {
	count, memory, known := r.alikeCards()
	if r.gpus.Kind != gpuinfo.VGPU || r.node.Pods == nil || !known ||
		r.node.Annotations[hamiRegister]+r.node.Annotations[volcanoRegister] != "" {
		return nil
	}
	scheduler := HAMi
	if r.gpus.Units[gpuinfo.VolcanoNumber] > 0 {
		scheduler = Volcano
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

// vgpuCards subtracts what pods hold. For a card with MIG instances, free memory as one number means nothing, so it is
// left out.
func (r *reading) vgpuCards(scheduler VGPUScheduler, devices []hamiDevice) []Card {
	held := r.vgpuHeld(scheduler, devices)
	cards := make([]Card, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		card := Card{Index: &d.Index, MemoryMiB: &d.Memory, Healthy: &d.Health, Source: scheduler.Name}
		if d.UUID != "" {
			card.UUID = &d.UUID
		}
		if held != nil {
			g := held.Of(d.UUID)
			shares, cores := max(d.Count-g.Shares, 0), max(d.Cores-g.Cores, 0)
			card.FreeUnits, card.FreeCores = &shares, &cores
			if memory := max(d.Memory-g.Memory-d.Memory*min(g.Percent, 100)/100, 0); d.Mode != "mig" {
				card.FreeMiB = &memory
			}
		}
		if !d.Health {
			card.Problem = "its agent reports it as unhealthy"
			card.empty()
		}
		cards = append(cards, card)
	}
	return cards
}

// vgpuHeld returns what the node's pods hold of the devices, nil while the pods are unknown.
func (r *reading) vgpuHeld(scheduler VGPUScheduler, devices []hamiDevice) *ByCard[string] {
	if r.node.Pods == nil {
		return nil
	}
	uuids := make([]string, len(devices))
	for i := range devices {
		uuids[i] = devices[i].UUID
	}
	held := scheduler.Held(r.node.Pods, uuids)
	r.unrecorded(held.Unrecorded(len(devices)))
	return held
}
