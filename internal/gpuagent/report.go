package gpuagent

import (
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// report returns what to publish of an inventory. It fails if a MIG layout is unknown: the annotation cannot express
// that, and a partitioned card without instances would look like one that offers nothing.
func (a *Agent) report(inventory gpuinfo.Inventory) (sharing.AgentReport, error) {
	report := sharing.AgentReport{Cards: make([]sharing.AgentCard, 0, len(inventory.Cards))}
	for _, card := range inventory.Cards {
		if card.Cut != nil && card.Cut.Enabled && card.Cut.Instances == nil && card.Healthy {
			return report, fmt.Errorf("reading the MIG instances of card %d: the driver does not show them to this "+
				"process: run it as root or with CAP_SYS_ADMIN, and in a container also with "+
				"NVIDIA_MIG_MONITOR_DEVICES=all",
				card.Index)
		}
		published := agentCard(a.remembered(card))
		if published.Healthy {
			published.Problem = watched(card)
		}
		a.faults.mark(&published)
		report.Cards = append(report.Cards, published)
	}
	return report, nil
}

// watched returns what is to be watched about a healthy card: errors and repairs of its memory.
func watched(card gpuinfo.Card) string {
	for _, f := range sharing.CheckCards(gpuinfo.Inventory{Cards: []gpuinfo.Card{card}}) {
		switch f.Code {
		case sharing.RowsPending, sharing.PagesPending, sharing.ErrorsUncorrected:
			return f.Message
		}
	}
	return ""
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

func agentCard(card gpuinfo.Card) sharing.AgentCard {
	published := sharing.AgentCard{
		Index: card.Index, UUID: card.UUID, Product: card.Product, Healthy: card.Healthy, Problem: card.Problem,
		MIG: sharing.AgentMIG{Instances: []gpuinfo.Instance{}},
	}
	if card.Memory != nil {
		published.MemoryMiB = int64(*card.Memory)
	}
	if card.Healthy && published.MemoryMiB == 0 {
		published.Healthy, published.Problem = false, "the driver does not report the card's memory"
	}
	if card.Free != nil && card.Memory != nil {
		free := int64(min(*card.Free, *card.Memory))
		published.FreeMiB = &free
	}
	if card.Cut != nil && card.Cut.Enabled {
		published.MIG.Enabled = true
		published.MIG.Instances = append(published.MIG.Instances, card.Cut.Layout()...)
	}
	return published
}

// same reports whether a report is not worth a patch: everything is equal, and free memory changed by less than a
// twentieth of each card. Otherwise work that allocates and frees memory would cause a patch after every reading.
func same(before, now sharing.AgentReport) bool {
	return slices.EqualFunc(before.Cards, now.Cards, func(a, b sharing.AgentCard) bool {
		return a.Index == b.Index && a.UUID == b.UUID && a.Product == b.Product && a.MemoryMiB == b.MemoryMiB &&
			a.Healthy == b.Healthy && a.Problem == b.Problem && a.MIG.Enabled == b.MIG.Enabled &&
			slices.Equal(a.MIG.Instances, b.MIG.Instances) &&
			nearlyFree(a, b)
	})
}

func nearlyFree(a, b sharing.AgentCard) bool {
	const twentieth = 20
	if a.FreeMiB == nil || b.FreeMiB == nil {
		return a.FreeMiB == b.FreeMiB
	}
	moved := max(*a.FreeMiB-*b.FreeMiB, *b.FreeMiB-*a.FreeMiB)
	return moved*twentieth < a.MemoryMiB
}
