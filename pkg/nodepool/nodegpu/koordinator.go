package nodegpu

import (
	"encoding/json"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// koordinatorAllocated is the annotation in which Koordinator's scheduler records the cards of a pod: {"gpu":
// [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "60", "koordinator.sh/gpu-memory-ratio": "60"}}]}
// (koordinator, apis/extension/device_share.go, AnnotationDeviceAllocated).
const koordinatorAllocated = "scheduling.koordinator.sh/device-allocated"

// koordinatorBoth requests the same percentage of a card's memory and cores.
const koordinatorBoth = "koordinator.sh/gpu"

// koordinatorCards returns the cards of a node whose resources Koordinator announces in percent, 100 for each card.
// FreeUnits is the percentage of the card's memory that is free.
func (r *reading) koordinatorCards() []Card {
	count := max(r.gpus.Units[gpuinfo.KoordinatorMemoryRatio], r.gpus.Units[gpuinfo.KoordinatorCores],
		r.gpus.Units[koordinatorBoth]) / 100
	if r.node.Pods == nil || count <= 0 || count > mostCards {
		return nil
	}
	held := &holdings[int]{}
	for _, pod := range r.node.Pods {
		record := koordinatorRecord(pod.Annotations[koordinatorAllocated], int(count))
		for card, g := range record {
			held.add(card, g)
		}
		if record == nil {
			held.everywhere = held.everywhere.plus(koordinatorShare(pod))
		}
	}
	cards := make([]Card, count)
	for i := range cards {
		g := held.of(i)
		memory, cores := max(100-g.percent, 0), max(100-g.cores, 0)
		cards[i] = Card{Index: &i, MemoryMiB: r.gpus.CardMemoryMiB, FreeUnits: &memory, FreeCores: &cores,
			Source: "koordinator"}
		if r.gpus.CardMemoryMiB != nil {
			free := *r.gpus.CardMemoryMiB * memory / 100
			cards[i].FreeMiB = &free
		}
	}
	return cards
}

// koordinatorShare returns what a pod requests of each of its cards. More than 100 percent are several cards.
func koordinatorShare(pod PodObject) grant {
	both := pod.Requests[koordinatorBoth]
	memory := max(pod.Requests[gpuinfo.KoordinatorMemoryRatio], both)
	cores := max(pod.Requests[gpuinfo.KoordinatorCores], both)
	cards := max(pod.Requests[gpuinfo.KoordinatorShared], (max(memory, cores)+99)/100, 1)
	return grant{percent: (memory + cards - 1) / cards, cores: (cores + cards - 1) / cards}
}

// koordinatorRecord reads what a pod was assigned on each card, nil if nothing is recorded or if the record is
// impossible for a node with this many cards (see vgpuRecord).
func koordinatorRecord(text string, count int) map[int]grant {
	var record struct {
		GPU []struct {
			Minor     int                        `json:"minor"`
			Resources map[string]json.RawMessage `json:"resources"`
		} `json:"gpu"`
	}
	if text == "" || json.Unmarshal([]byte(text), &record) != nil || len(record.GPU) == 0 {
		return nil
	}
	cards := map[int]grant{}
	for _, device := range record.GPU {
		percent := func(name string) int64 {
			n, err := strconv.ParseInt(strings.Trim(string(device.Resources[name]), `"`), 10, 64)
			if err != nil {
				return 100 // An assigned card without a readable share is taken whole.
			}
			return n
		}
		g := grant{percent: percent(gpuinfo.KoordinatorMemoryRatio), cores: percent(gpuinfo.KoordinatorCores)}
		if device.Minor < 0 || device.Minor >= count || min(g.percent, g.cores) < 0 || max(g.percent, g.cores) > 100 {
			return nil
		}
		cards[device.Minor] = cards[device.Minor].plus(g)
	}
	return cards
}
