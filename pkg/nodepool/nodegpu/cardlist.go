package nodegpu

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readFree finds what is free: the node's units less what its pods request and what ResourceClaims have, and what is
// known about each card.
func (r *reading) readFree() {
	r.gpus.Claimed = r.claimedUnits()
	if r.node.Pods != nil && r.gpus.Units != nil {
		r.freeUnits()
	}
	for _, source := range cardSources {
		if cards := source(r); len(cards) > 0 {
			r.gpus.PerCard = cards
			break
		}
	}
	r.emptyClaimed()
	r.joinAgent()
	r.measureInstances()
	slices.SortStableFunc(r.gpus.PerCard, func(a, b Card) int {
		if a.Index == nil || b.Index == nil {
			return 0
		}
		return cmp.Compare(*a.Index, *b.Index)
	})
}

// cardSources describe single cards, the most exact first: a scheduler that shares cards records its assignments.
var cardSources = []func(*reading) []Card{
	(*reading).hamiCards, (*reading).volcanoCards, (*reading).unregisteredCards, (*reading).koordinatorCards,
	(*reading).gpuMemoryCards, (*reading).draCards, (*reading).wholeCards,
}

func (r *reading) freeUnits() {
	r.gpus.Free = map[string]int64{}
	for name, units := range r.gpus.Units {
		if resource, err := r.names.Resource(name); err == nil && resource.Role == gpuinfo.Information {
			continue
		}
		for _, pod := range r.node.Pods {
			units -= pod.Requests[name]
		}
		units -= r.gpus.Claimed[name]
		r.gpus.Free[name] = max(units, 0)
	}
}

// wholeCards describes whole cards. The API does not show which cards a device plugin assigned, only how many are left.
func (r *reading) wholeCards() []Card {
	name, others := r.cardUnits()
	units, free := r.gpus.Units[name], r.gpus.Free[name]
	if r.gpus.Kind != gpuinfo.Whole || others || units <= 0 || units > mostCards || r.gpus.Free == nil ||
		r.gpus.Cards != nil && *r.gpus.Cards < units {
		return nil
	}
	cards := make([]Card, units)
	for i := range cards {
		left, memory := int64(0), int64(0)
		if int64(i) < free {
			left = 1
		}
		cards[i] = Card{FreeUnits: &left, MemoryMiB: r.gpus.CardMemoryMiB, Source: "pods"}
		if r.gpus.CardMemoryMiB != nil {
			memory = *r.gpus.CardMemoryMiB * left
			cards[i].FreeMiB = &memory
		}
	}
	return cards
}

// joinAgent adds what Heliostat's agent saw: to the cards of another source, matched by UUID or index, or as the only
// source.
func (r *reading) joinAgent() {
	text := r.node.Annotations[AgentAnnotation]
	if text == "" {
		return
	}
	report, err := ParseAgentReport(text)
	if err != nil {
		r.problem(LabelUnreadable, err.Error())
		return
	}
	if why := report.outdated(r.node, r.at); why != "" {
		r.problem(AgentOutdated, AgentAnnotation+" is ignored: "+why)
		return
	}
	r.withoutImpossible(&report)
	known := r.gpus.PerCard
	if len(known) == 0 || known[0].Index == nil && known[0].UUID == nil {
		r.gpus.PerCard = r.agentCards(report, known)
		return
	}
	for i := range known {
		for _, seen := range report.Cards {
			if known[i].is(seen) {
				known[i].join(seen)
				r.agentHealth(seen)
			}
		}
	}
}

// withoutImpossible removes a layout that the product's placement tables do not allow: anyone who may change the node
// can write the annotation.
func (r *reading) withoutImpossible(report *AgentReport) {
	for i := range report.Cards {
		card := &report.Cards[i]
		product, known := gpuinfo.ProductOf(card.Product)
		if !known {
			continue
		}
		layout := make([]gpuinfo.Instance, 0, len(card.MIG.Instances))
		for _, instance := range card.MIG.Instances {
			layout = append(layout, gpuinfo.Instance{Profile: instance.Profile, Start: instance.Start})
		}
		if err := product.Check(layout); err != nil {
			r.problem(LabelUnreadable, fmt.Sprintf("%s: card %d, a %s, cannot have these instances: %v",
				AgentAnnotation, card.Index, product.Name, err))
			card.MIG.Instances = nil
		}
	}
}

// agentCards returns the cards of a report alone. If the other source's cards have no identity, its free amounts are
// used only if they are equal on all cards.
func (r *reading) agentCards(report AgentReport, anonymous []Card) []Card {
	cards := make([]Card, 0, len(report.Cards))
	for _, seen := range report.Cards {
		card := Card{Index: &seen.Index, Source: "agent"}
		if seen.MemoryMiB > 0 {
			card.MemoryMiB = &seen.MemoryMiB
		}
		if seen.UUID != "" {
			card.UUID = &seen.UUID
		}
		if n := len(anonymous); n == len(report.Cards) && *anonymous[0].FreeUnits == *anonymous[n-1].FreeUnits {
			left := *anonymous[0].FreeUnits
			free := seen.MemoryMiB * left
			card.FreeUnits, card.FreeMiB = &left, &free
		}
		card.join(seen)
		cards = append(cards, card)
		r.agentHealth(seen)
	}
	return cards
}

func (r *reading) agentHealth(seen AgentCard) {
	if !seen.Healthy {
		r.problem(DeviceUnhealthy, fmt.Sprintf("the agent reports card %d as unhealthy: %s", seen.Index,
			cmp.Or(seen.Problem, "no reason given")))
	}
}

func (c Card) is(seen AgentCard) bool {
	if c.UUID != nil && seen.UUID != "" {
		return *c.UUID == seen.UUID
	}
	return c.Index != nil && *c.Index == seen.Index
}

// join adds what only NVML knows. An unhealthy card has no room.
func (c *Card) join(seen AgentCard) {
	c.UnusedMiB = seen.FreeMiB
	if unknown := seen.MIG.Enabled && seen.MIG.Instances == nil; c.Instances == nil && !unknown {
		c.Instances = []CardInstance{}
		for _, instance := range seen.MIG.Instances {
			c.Instances = append(c.Instances, CardInstance{Profile: instance.Profile, Start: &instance.Start})
		}
	}
	if c.Healthy == nil || !seen.Healthy {
		c.Healthy = &seen.Healthy
	}
	if c.Problem == "" {
		c.Problem = seen.Problem
	}
	if !seen.Healthy {
		c.empty()
	}
}
