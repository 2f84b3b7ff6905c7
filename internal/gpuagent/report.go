package gpuagent

import (
	"fmt"
	"reflect"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// report returns what to publish of an inventory. It fails if a MIG layout is unknown: the annotation cannot express
// that, and a partitioned card without instances would look like one that offers nothing.
func (a *Agent) report(inventory gpuinfo.Inventory) (sharing.AgentReport, error) {
	report := sharing.AgentReport{Cards: make([]gpuinfo.Card, 0, len(inventory.Cards))}
	for _, card := range inventory.Cards {
		if card.Cut != nil && card.Cut.Enabled && card.Cut.Instances == nil && card.Healthy {
			return report, fmt.Errorf("reading the MIG instances of card %d: the driver does not show them to this "+
				"process: run it as root or with CAP_SYS_ADMIN, and in a container also with "+
				"NVIDIA_MIG_MONITOR_DEVICES=all",
				card.Index)
		}
		card = a.remembered(card)
		switch {
		case card.Healthy && card.Memory == nil:
			card.Healthy, card.Problem = false, "the driver does not report the card's memory"
		case card.Healthy:
			if faults := sharing.MemoryFaults(card); len(faults) > 0 {
				card.Problem = faults[0] // to be watched: work may continue
			}
		}
		a.faults.mark(&card)
		report.Cards = append(report.Cards, card)
	}
	return report, nil
}

// remembered fills in what an unhealthy card no longer reports about itself.
func (a *Agent) remembered(card gpuinfo.Card) gpuinfo.Card {
	if card.UUID != "" && card.Product != "" && card.Memory != nil {
		if a.lastFull == nil {
			a.lastFull = map[int]gpuinfo.Card{}
		}
		a.lastFull[card.Index] = card
		return card
	}
	before, known := a.lastFull[card.Index]
	if !known || card.UUID != "" && card.UUID != before.UUID {
		return card
	}
	card.UUID, card.Product, card.Memory = before.UUID, before.Product, before.Memory
	if card.Cut == nil {
		card.Cut = before.Cut
	}
	return card
}

// same reports whether a report is not worth a patch: everything is equal, and free memory changed by less than a
// twentieth of each card. Otherwise work that allocates and frees memory would cause a patch after every reading.
func same(before, now sharing.AgentReport) bool {
	return slices.EqualFunc(before.Cards, now.Cards, func(a, b gpuinfo.Card) bool {
		near := nearlyFree(a, b)
		a.Used, a.Free, b.Used, b.Free = nil, nil, nil, nil
		return near && reflect.DeepEqual(a, b)
	})
}

func nearlyFree(a, b gpuinfo.Card) bool {
	const twentieth = 20
	if a.Free == nil || b.Free == nil || a.Memory == nil {
		return (a.Free == nil) == (b.Free == nil)
	}
	return max(*a.Free-*b.Free, *b.Free-*a.Free)*twentieth < *a.Memory
}
