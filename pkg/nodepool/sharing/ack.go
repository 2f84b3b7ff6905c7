package sharing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Labels of ACK.
const (
	LabelACKName      = "aliyun.accelerator/nvidia_name"
	labelACKMemory    = "aliyun.accelerator/nvidia_mem"
	labelACKMode      = "ack.node.gpu.schedule"
	labelACKPlacement = "ack.node.gpu.placement"
)

// ackModes are the values of the node label ack.node.gpu.schedule, with the isolation between pods that share a card
// (ACK, "Labels for enabling GPU scheduling policies"). A node has one mode, and announces the resources of the other
// modes with quantity 0. default allocates whole cards as nvidia.com/gpu, topology as aliyun.com/gpu. cgpu shares cards
// by memory, and core_mem by memory and cores; cGPU enforces both. share shares cards by memory, and nothing enforces
// the limit. mps shares cards by memory with MPS. Only older documents mention mig.
var ackModes = map[string]gpuinfo.Isolation{
	"default": gpuinfo.Hardware, "topology": gpuinfo.Hardware, "mig": gpuinfo.Hardware,
	"cgpu": gpuinfo.Limit, "core_mem": gpuinfo.Limit, "mps": gpuinfo.Limit, "share": gpuinfo.NoIsolation,
}

// ACKCards reads the pod label by which ACK spreads the GPU memory of a pod over several cards; 0 if it is not set, or
// no number of cards, as ACK reads it.
func ACKCards(labels map[string]string) int64 {
	cards, err := strconv.ParseInt(labels["aliyun.com/gpu-count"], 10, 64)
	if err != nil {
		return 0
	}
	return max(cards, 0)
}

// ACK since 2021 records JSON that maps container index to card index to units. The open-source extender gpushare
// records the card, and the pod's units.
const (
	ackAllocation  = "scheduler.framework.gpushare.allocation"
	ackCores       = "gpushare.alibabacloud.com/core-percentage"
	gpushareCard   = "ALIYUN_COM_GPU_MEM_IDX"
	gpushareAmount = "ALIYUN_COM_GPU_MEM_POD"
)

// gpuMemoryHeld adds up the units of memory and the percent of cores that pods hold of a node's cards, which ACK or
// gpushare shares.
func gpuMemoryHeld(pods []Pod, cards int) *byCard[int] {
	held := &byCard[int]{}
	for _, pod := range pods {
		asked := Share{Memory: pod.Requests[gpuinfo.AliyunMemory], Cores: pod.Requests[gpuinfo.AliyunCores]}
		if asked.Memory == 0 {
			continue
		}
		memory, cores := ackRecord(pod.Annotations[ackAllocation], cards), ackRecord(pod.Annotations[ackCores], cards)
		if memory == nil {
			memory = gpushareRecord(pod, asked.Memory, cards)
		}
		if memory == nil {
			held.addUnrecorded(pod, ackAllocation, asked)
			continue
		}
		for card, units := range memory {
			held.add(card, Share{Memory: units})
		}
		for card, percent := range cores {
			held.add(card, Share{Cores: percent})
		}
		if cores == nil && asked.Cores > 0 {
			held.addUnrecorded(pod, ackCores, Share{Cores: asked.Cores})
		}
	}
	return held
}

// gpushareRecord returns the units of a pod by its card, nil if no plausible card is recorded. An implausible amount
// counts as what the pod requests.
func gpushareRecord(pod Pod, requested int64, cards int) map[int]int64 {
	index, err := strconv.Atoi(pod.Annotations[gpushareCard])
	if err != nil || index < 0 || index >= cards {
		return nil
	}
	n, err := strconv.ParseInt(pod.Annotations[gpushareAmount], 10, 64)
	if err != nil || n <= 0 || n > mostAmount {
		n = requested
	}
	return map[int]int64{index: n}
}

// ackRecord reads {"container": {"card": amount}} and adds up over containers. It returns nil if nothing is recorded,
// or if the record is impossible for a node with this many cards (see vgpuScheduler.record).
func ackRecord(text string, cards int) map[int]int64 {
	var byContainer map[string]map[string]int64
	if text == "" || json.Unmarshal([]byte(text), &byContainer) != nil {
		return nil
	}
	sums := map[int]int64{}
	for _, amounts := range byContainer {
		for card, amount := range amounts {
			index, err := strconv.Atoi(card)
			if err != nil || index < 0 || index >= cards || amount < 0 || amount > mostAmount {
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

// gpuMemoryCards returns the cards of a node whose memory ACK or gpushare shares. The cards of a node are alike.
func (r *reading) gpuMemoryCards() []Card {
	perCard, known := r.gpus.UnitsPerCard[gpuinfo.AliyunMemory]
	if r.gpus.Kind != gpuinfo.GPUMemory || !known || r.gpus.Cards == nil || r.node.Pods == nil ||
		*r.gpus.Cards > mostCards {
		return nil
	}
	held := gpuMemoryHeld(r.node.Pods, int(*r.gpus.Cards))
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
			cards[i].FreeCores = new(max(100-g.Cores, 0))
		}
	}
	return cards
}

// memoryText reads ACK's label: 23028MiB, or in older releases with a space or without a unit.
func memoryText(text string) (mib int64, ok bool) {
	digits := strings.TrimRight(strings.TrimSpace(text), "GMKiB ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 {
		return 0, false
	}
	switch strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), digits)) {
	case "", "MiB":
		return n, true
	case "GiB":
		return n * 1024, true
	}
	return 0, false
}

// perCard divides a sum of memory over the cards, which are alike on a node.
func (r *reading) perCard(resource string, sum int64) {
	if r.gpus.Cards != nil && *r.gpus.Cards > 0 && sum%*r.gpus.Cards == 0 {
		r.gpus.UnitsPerCard = map[string]int64{resource: sum / *r.gpus.Cards}
	}
}

// readGPUMemory recognizes cards whose memory ACK, or the open-source gpushare that it came from, shares. ACK labels
// its nodes with the kind of isolation; gpushare has no such labels and isolates nothing. The number of cards beside an
// amount of 0 shows the same kind: the kubelet sets the amount of a plugin that does not respond to 0.
func (r *reading) readGPUMemory() bool {
	sum, announced := r.gpus.Units[gpuinfo.AliyunMemory]
	switch {
	case r.leftOver(gpuinfo.AliyunMemory) && r.gpus.Units[gpuinfo.AliyunCount] == 0:
		return false
	case max(sum, r.node.Capacity[gpuinfo.AliyunMemory]) > 0:
		r.perCard(gpuinfo.AliyunMemory, sum)
		r.memory(gpuinfo.AliyunMemory, r.gpuMemoryUnit(sum))
	case announced && r.gpus.Units[gpuinfo.AliyunCount] > 0 && len(r.announced()) == 0:
		r.perCard(gpuinfo.AliyunMemory, 0)
		r.problem(MemoryMissing, fmt.Sprintf("%s is 0 beside %s %d, so no request for memory fits: the device plugin "+
			"announces nothing", gpuinfo.AliyunMemory, gpuinfo.AliyunCount, r.gpus.Units[gpuinfo.AliyunCount]))
	default:
		return false
	}
	isolation := gpuinfo.NoIsolation
	switch value := r.label(labelACKMode); {
	case value != "":
		isolation = cmp.Or(ackModes[value], gpuinfo.UnknownIsolation)
		if isolation == gpuinfo.UnknownIsolation {
			r.problem(LabelUnreadable, fmt.Sprintf("reading ack.node.gpu.schedule=%q: want cgpu, core_mem, default, "+
				"mps, share or topology", value))
		}
	case r.label("cgpu") == "true":
		isolation = gpuinfo.Limit // the label of older releases
	case r.label(labelACKPlacement) != "":
		isolation = gpuinfo.UnknownIsolation
	}
	return r.is(gpuinfo.GPUMemory, isolation)
}

// gpuMemoryUnit returns the MiB of one unit: 1024, unless gpushare is configured to count MiB, or ACK's share mode to
// count 128 MiB. If the memory of a card is known, one of the three must match it. Otherwise the size distinguishes GiB
// from MiB if it can; 0 means that it cannot.
func (r *reading) gpuMemoryUnit(sum int64) int64 {
	const (
		gib, share, mib = 1024, 128, 1
		// No card has more GiB, and no shared card has fewer MiB.
		mostGiB, leastMiB = 512, 2048
	)
	if ok, err := r.names.Resource(gpuinfo.AliyunMemory); err == nil && ok.Unit > 0 {
		return int64(ok.Unit)
	}
	perCard, known := r.gpus.UnitsPerCard[gpuinfo.AliyunMemory]
	if card := r.gpus.CardMemoryMiB; known && card != nil {
		for _, unit := range []int64{gib, share, mib} {
			// A card's memory is rounded to units, up or down, and a part of it can be reserved.
			if total := perCard * unit; total < *card+unit && 10*(total+unit) >= 9**card {
				return unit
			}
		}
		return 0
	}
	if !known {
		perCard = sum
	}
	switch {
	case r.label(labelACKMode) == "share":
		return 0
	case perCard <= mostGiB:
		return gib
	case known && perCard >= leastMiB || !known && sum > mostCards*mostGiB:
		return mib
	}
	return 0
}
