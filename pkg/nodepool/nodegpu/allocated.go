package nodegpu

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Annotations in which schedulers and device plugins that share cards record which card a pod got.
const (
	hamiAllocated   = "hami.io/vgpu-devices-allocated"
	hamiToAllocate  = "hami.io/vgpu-devices-to-allocate"
	volcanoRegister = "volcano.sh/node-vgpu-register"
	volcanoIDs      = "volcano.sh/vgpu-ids-new"
	// ACK since 2021: JSON that maps container index to card index to units. The open-source extender: the card, and
	// the pod's units.
	ackAllocation  = "scheduler.framework.gpushare.allocation"
	ackCores       = "gpushare.alibabacloud.com/core-percentage"
	gpushareCard   = "ALIYUN_COM_GPU_MEM_IDX"
	gpushareAmount = "ALIYUN_COM_GPU_MEM_POD"
)

// PodAnnotations returns the annotations of pods that a Reader needs.
func PodAnnotations() []string {
	return []string{hamiAllocated, hamiToAllocate, volcanoIDs, ackAllocation, ackCores, gpushareCard, gpushareAmount,
		koordinatorAllocated}
}

// grant is what a pod holds of one card: shares, memory in MiB or in units, memory in percent of the card's, and
// percent of cores.
type grant struct{ shares, memory, percent, cores int64 }

func (g grant) plus(other grant) grant {
	return grant{g.shares + other.shares, g.memory + other.memory, g.percent + other.percent, g.cores + other.cores}
}

// holdings are grants by card. A pod without a record of its card is charged to every card: it is on one of them, and
// no card then appears to have more room than it has.
type holdings[K comparable] struct {
	byCard     map[K]grant
	everywhere grant
}

func (h *holdings[K]) of(card K) grant { return h.byCard[card].plus(h.everywhere) }

func (h *holdings[K]) add(card K, g grant) {
	if h.byCard == nil {
		h.byCard = map[K]grant{}
	}
	h.byCard[card] = h.byCard[card].plus(g)
}

// hamiCards returns the cards in HAMi's register, less what its scheduler assigned to the node's pods.
func (r *reading) hamiCards() []Card {
	devices, err := hamiDevices(r.node.Annotations[hamiRegister])
	if err != nil || r.gpus.Kind != gpuinfo.VGPU {
		return nil
	}
	held := r.vgpuHoldings(devices, gpuinfo.NvidiaGPU, gpuinfo.HAMiMemory, gpuinfo.HAMiCores,
		hamiAllocated, hamiToAllocate)
	return r.vgpuCards("hami", devices, held)
}

// volcanoCards returns the cards in Volcano's register: UUID,count,memory,type,health,mode for each, ending in a colon
// (volcano, pkg/scheduler/api/devices/nvidia/vgpu).
func (r *reading) volcanoCards() []Card {
	register := r.node.Annotations[volcanoRegister]
	if register == "" || r.gpus.Kind != gpuinfo.VGPU {
		return nil
	}
	var devices []hamiDevice
	for entry := range strings.SplitSeq(register, ":") {
		if !strings.Contains(entry, ",") {
			continue
		}
		device, err := volcanoDevice(entry, len(devices))
		if err != nil {
			r.problem(LabelUnreadable, fmt.Sprintf("reading %s: %q: %v", volcanoRegister, entry, err))
			return nil
		}
		devices = append(devices, device)
	}
	held := r.vgpuHoldings(devices, gpuinfo.VolcanoNumber, gpuinfo.VolcanoMemory, gpuinfo.VolcanoCores, volcanoIDs)
	return r.vgpuCards("volcano", devices, held)
}

func volcanoDevice(entry string, index int) (device hamiDevice, err error) {
	fields := strings.Split(entry, ",")
	if len(fields) < 6 {
		return device, fmt.Errorf("%d fields, want 6", len(fields))
	}
	device = hamiDevice{UUID: fields[0], Index: index, Cores: 100, Type: fields[3], Mode: fields[5]}
	for i, into := range []*int64{&device.Count, &device.Memory} {
		if *into, err = strconv.ParseInt(fields[1+i], 10, 64); err != nil {
			return device, fmt.Errorf("field %d: %w", 2+i, err)
		}
	}
	if device.Health, err = strconv.ParseBool(fields[4]); err != nil {
		return device, fmt.Errorf("field 5: %w", err)
	}
	return device, device.check()
}

// betweenGrants separates the grants of a record.
func betweenGrants(c rune) bool { return c == ':' || c == ';' }

// vgpuCards subtracts what is held. For a card with MIG instances, free memory as one number means nothing, so it is
// left out.
func (r *reading) vgpuCards(source string, devices []hamiDevice, held *holdings[string]) []Card {
	cards := make([]Card, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		card := Card{Index: &d.Index, MemoryMiB: &d.Memory, Healthy: &d.Health, Source: source}
		if d.UUID != "" {
			card.UUID = &d.UUID
		}
		if held != nil {
			g := held.of(d.UUID)
			shares, cores := max(d.Count-g.shares, 0), max(d.Cores-g.cores, 0)
			card.FreeUnits, card.FreeCores = &shares, &cores
			if memory := max(d.Memory-g.memory-d.Memory*min(g.percent, 100)/100, 0); d.Mode != "mig" {
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

// vgpuHoldings adds up what the node's pods were assigned: UUID,type,MiB,cores for each card, with a colon after each
// and a semicolon between containers. A pod without a record holds what it requests, or all of a card if it requests no
// memory. The result is nil while the pods are unknown.
func (r *reading) vgpuHoldings(
	devices []hamiDevice, count, memory, cores string, annotations ...string,
) *holdings[string] {
	if r.node.Pods == nil {
		return nil
	}
	known := map[string]bool{}
	for i := range devices {
		known[devices[i].UUID] = true
	}
	held := &holdings[string]{}
	for _, pod := range r.node.Pods {
		if pod.Requests[count] == 0 && pod.Requests[memory] == 0 {
			continue
		}
		record, recorded := vgpuRecord(pod, annotations, known)
		for card, g := range record {
			held.add(card, g)
		}
		if !recorded {
			const allOfACard = 1 << 40
			asked := grant{shares: 1, memory: pod.Requests[memory], cores: pod.Requests[cores]}
			switch percent := pod.Requests[gpuinfo.HAMiMemoryPercentage]; {
			case asked.memory > 0:
			case percent > 0 && memory == gpuinfo.HAMiMemory:
				asked.percent = percent
			default:
				asked.memory = allOfACard
			}
			held.everywhere = held.everywhere.plus(asked)
		}
	}
	return held
}

// vgpuRecord returns what a pod was assigned on each card. Anyone who can create a pod can write its annotations, so an
// implausible record is ignored: a negative amount would make room for others, and a card that the node does not have
// would place the pod nowhere.
func vgpuRecord(pod PodObject, annotations []string, known map[string]bool) (record map[string]grant, recorded bool) {
	for _, key := range annotations {
		record = map[string]grant{}
		for entry := range strings.FieldsFuncSeq(pod.Annotations[key], betweenGrants) {
			card, g, ok := vgpuGrant(entry)
			if !ok || !known[card] {
				return nil, false
			}
			record[card] = record[card].plus(g)
		}
		if len(record) > 0 {
			return record, true
		}
	}
	return nil, false
}

// vgpuGrant reads UUID,type,MiB,cores. If HAMi partitions the card, the instance follows the UUID in brackets
// (docs/reference/facts.md#mig-instances-of-hami).
func vgpuGrant(entry string) (card string, g grant, ok bool) {
	fields := strings.Split(entry, ",")
	if len(fields) < 4 {
		return "", grant{}, false
	}
	memory, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return "", grant{}, false
	}
	cores, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || min(memory, cores) < 0 || max(memory, cores) > mostAmount {
		return "", grant{}, false
	}
	card, _, _ = strings.Cut(fields[0], "[")
	return card, grant{shares: 1, memory: memory, cores: cores}, true
}

// gpuMemoryCards returns the cards of a node whose memory ACK or gpushare shares. The cards of a node are alike.
func (r *reading) gpuMemoryCards() []Card {
	perCard, known := r.gpus.UnitsPerCard[gpuinfo.AliyunMemory]
	if r.gpus.Kind != gpuinfo.GPUMemory || !known || r.gpus.Cards == nil || r.node.Pods == nil ||
		*r.gpus.Cards > mostCards {
		return nil
	}
	held := r.gpuMemoryHoldings()
	cards := make([]Card, *r.gpus.Cards)
	for i := range cards {
		g := held.of(i)
		left := max(perCard-g.memory, 0)
		cards[i] = Card{Index: &i, MemoryMiB: r.gpus.CardMemoryMiB, FreeUnits: &left, Source: "gpu-mem"}
		if unit := r.gpus.MemoryMiB[gpuinfo.AliyunMemory]; unit > 0 {
			total, free := perCard*unit, left*unit
			cards[i].MemoryMiB, cards[i].FreeMiB = &total, &free
		}
		if r.gpus.Units[gpuinfo.AliyunCores] > 0 {
			cores := max(100-g.cores, 0)
			cards[i].FreeCores = &cores
		}
	}
	return cards
}

func (r *reading) gpuMemoryHoldings() *holdings[int] {
	held := &holdings[int]{}
	for _, pod := range r.node.Pods {
		asked := grant{memory: pod.Requests[gpuinfo.AliyunMemory], cores: pod.Requests[gpuinfo.AliyunCores]}
		if asked.memory == 0 {
			continue
		}
		count := int(*r.gpus.Cards)
		memory, cores := ackCards(pod.Annotations[ackAllocation], count), ackCards(pod.Annotations[ackCores], count)
		if index, err := strconv.Atoi(pod.Annotations[gpushareCard]); err == nil && index >= 0 && index < count &&
			memory == nil {
			if n, err := strconv.ParseInt(pod.Annotations[gpushareAmount], 10, 64); err == nil && n > 0 &&
				n <= mostAmount {
				asked.memory = n
			}
			memory = map[int]int64{index: asked.memory}
		}
		if memory == nil {
			held.everywhere = held.everywhere.plus(asked)
			continue
		}
		for card, units := range memory {
			held.add(card, grant{memory: units})
		}
		for card, percent := range cores {
			held.add(card, grant{cores: percent})
		}
		if cores == nil && asked.cores > 0 {
			held.everywhere = held.everywhere.plus(grant{cores: asked.cores})
		}
	}
	return held
}

// ackCards reads {"container": {"card": amount}} and adds up over containers. It returns nil if nothing is recorded, or
// if the record is impossible for a node with this many cards (see vgpuRecord).
func ackCards(text string, count int) map[int]int64 {
	var byContainer map[string]map[string]int64
	if text == "" || json.Unmarshal([]byte(text), &byContainer) != nil {
		return nil
	}
	sums := map[int]int64{}
	for _, cards := range byContainer {
		for card, amount := range cards {
			index, err := strconv.Atoi(card)
			if err != nil || index < 0 || index >= count || amount < 0 || amount > mostAmount {
				return nil
			}
			sums[index] += amount
		}
	}
	if len(sums) == 0 {
		return nil
	}
	return sums
}
