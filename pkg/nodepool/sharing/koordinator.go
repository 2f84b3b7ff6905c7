package sharing

import (
	"encoding/json"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// koordinatorCards returns the cards of a node whose resources Koordinator announces in percent, 100 for each card.
// FreeUnits is the percentage of the card's memory that is free.
func (r *reading) koordinatorCards() []Card {
	count := max(r.gpus.Units[gpuinfo.KoordinatorMemoryRatio], r.gpus.Units[gpuinfo.KoordinatorCores],
		r.gpus.Units[gpuinfo.KoordinatorBoth]) / 100
	if r.node.Pods == nil || count <= 0 || count > mostCards {
		return nil
	}
	held := r.koordinatorHeld(int(count))
	r.unrecorded(held.Unrecorded(int(count)))
	cards := make([]Card, count)
	for i := range cards {
		g := held.Of(i)
		memory, cores := max(100-g.Percent, 0), max(100-g.Cores, 0)
		cards[i] = Card{Index: &i, MemoryMiB: r.gpus.CardMemoryMiB, FreeUnits: &memory, FreeCores: &cores,
			Source: "koordinator"}
		if r.gpus.CardMemoryMiB != nil {
			cards[i].FreeMiB = new(*r.gpus.CardMemoryMiB * memory / 100)
		}
	}
	return cards
}

// koordinatorAllocated is the annotation in which Koordinator's scheduler records the cards of a pod: {"gpu":
// [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "60", "koordinator.sh/gpu-memory-ratio": "60"}}]}
// (koordinator, apis/extension/device_share.go, AnnotationDeviceAllocated).
const koordinatorAllocated = "scheduling.koordinator.sh/device-allocated"

// koordinatorHeld adds up the percent of memory and cores that pods hold of the node's cards.
func (r *reading) koordinatorHeld(cards int) *byCard[int] {
	held := &byCard[int]{}
	for _, pod := range r.node.Pods {
		record := koordinatorRecord(pod.Annotations[koordinatorAllocated], cards)
		for card, share := range record {
			held.add(card, share)
		}
		if record == nil {
			of := map[string]raydemand.Amount{}
			for name, units := range pod.Requests {
				of[name] = raydemand.Whole(units)
			}
			asked := koordinatorRequest(of)
			held.addUnrecorded(pod, koordinatorAllocated,
				Share{Percent: max(asked.Percent, min(r.gpus.MemoryPercent(of), 100)), Cores: asked.Cores})
		}
	}
	return held
}

// koordinatorRequest reads requests in percent of a card. More than 100 percent are several whole cards (Koordinator
// documentation, GPU share).
func koordinatorRequest(of map[string]raydemand.Amount) Request {
	both := unitsOf(of, gpuinfo.KoordinatorBoth)
	memory := max(unitsOf(of, gpuinfo.KoordinatorMemoryRatio), both)
	cores := max(unitsOf(of, gpuinfo.KoordinatorCores), both)
	if memory <= 0 && cores <= 0 {
		return Request{}
	}
	cards := max(unitsOf(of, gpuinfo.KoordinatorShared), (max(memory, cores)+99)/100)
	return Request{Cards: cards, Percent: (memory + cards - 1) / cards, Cores: (cores + cards - 1) / cards}
}

// MemoryPercent returns the percent of a card's memory that a pod requests by Koordinator's bytes, on cards like the
// node's, and above 100 if they are too small; 0 if it does not, or if the node does not show what a card has. As many
// pods have a part of one card as by their bytes.
func (n *GPUs) MemoryPercent(of map[string]raydemand.Amount) int64 {
	parts := max(koordinatorRequest(of).Cards, unitsOf(of, gpuinfo.KoordinatorShared), 1)
	each := unitsOf(of, gpuinfo.KoordinatorMemory) / parts
	cards := n.Units[gpuinfo.KoordinatorMemoryRatio] / 100
	if each <= 0 || cards <= 0 || n.Units[gpuinfo.KoordinatorMemory] < cards ||
		unitsOf(of, gpuinfo.KoordinatorMemoryRatio) > 0 {
		return 0
	}
	card := n.Units[gpuinfo.KoordinatorMemory] / cards
	if card < each {
		return 101
	}
	return min(int64(float64(each)/float64(card)*100)+1, 100/(card/each))
}

// koordinatorRecord reads what a pod was assigned on each card, nil if nothing is recorded or if the record is
// impossible for a node with this many cards (see vgpuScheduler.record).
func koordinatorRecord(text string, cards int) map[int]Share {
	var record struct {
		GPU []struct {
			Minor     int                        `json:"minor"`
			Resources map[string]json.RawMessage `json:"resources"`
		} `json:"gpu"`
	}
	if text == "" || json.Unmarshal([]byte(text), &record) != nil || len(record.GPU) == 0 {
		return nil
	}
	byCard := map[int]Share{}
	for _, device := range record.GPU {
		percent := func(name string) int64 {
			n, err := strconv.ParseInt(strings.Trim(string(device.Resources[name]), `"`), 10, 64)
			if err != nil {
				return 100 // An assigned card without a readable share is taken whole.
			}
			return n
		}
		g := Share{Percent: percent(gpuinfo.KoordinatorMemoryRatio), Cores: percent(gpuinfo.KoordinatorCores)}
		if device.Minor < 0 || device.Minor >= cards || min(g.Percent, g.Cores) < 0 || max(g.Percent, g.Cores) > 100 {
			return nil
		}
		byCard[device.Minor] = byCard[device.Minor].plus(g)
	}
	return byCard
}
