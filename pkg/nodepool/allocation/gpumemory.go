package allocation

import (
	"encoding/json"
	"strconv"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// ACK since 2021 records JSON that maps container index to card index to units. The open-source extender gpushare
// records the card, and the pod's units.
const (
	ackAllocation  = "scheduler.framework.gpushare.allocation"
	ackCores       = "gpushare.alibabacloud.com/core-percentage"
	gpushareCard   = "ALIYUN_COM_GPU_MEM_IDX"
	gpushareAmount = "ALIYUN_COM_GPU_MEM_POD"
)

// GPUMemory adds up the units of memory and the percent of cores that pods hold of a node's cards, which ACK or
// gpushare shares.
func GPUMemory(pods []Pod, cards int) *ByCard[int] {
	held := &ByCard[int]{}
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
// or if the record is impossible for a node with this many cards (see VGPUScheduler.record).
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
