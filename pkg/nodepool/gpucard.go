package nodepool

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Card is what is known of one physical card of a node: a request must fit one card, and a sum over cards says nothing about that. What is
// not known is nil.
type Card struct {
	// Index is the card's number on the node, UUID its identity. Both are nil where only the number of free cards is known: then the free ones
	// stand first.
	Index *int    `json:"index"`
	UUID  *string `json:"uuid"`
	// MemoryMiB is the memory that is handed out of the card. FreeMiB is what of it no pod was promised, UnusedMiB what no process held when
	// the agent last looked: only the former is room for a pod.
	MemoryMiB *int64 `json:"memoryMiB"`
	FreeMiB   *int64 `json:"freeMiB"`
	UnusedMiB *int64 `json:"unusedMiB"`
	// FreeUnits counts what is free in the node's units: memory units of gpu-mem, shares of HAMi and Volcano, 1 or 0 for a whole card.
	FreeUnits *int64 `json:"freeUnits"`
	// FreeCores is in percent of the card's multiprocessors, where they are handed out.
	FreeCores *int64 `json:"freeCores"`
	// Instances are the card's MIG instances, empty on a card that has none.
	Instances []CardInstance `json:"instances"`
	// MemoryUnits is the length of the card's memory axis, nil where the product has no MIG or is not known.
	MemoryUnits *int `json:"memoryUnits"`
	// Healthy is false when work must not go there; Problem says why.
	Healthy *bool  `json:"healthy"`
	Problem string `json:"problem,omitempty"`
	// Source is what tells: hami, volcano, gpu-mem, dra, agent, or pods.
	Source string `json:"source"`
}

// CardInstance is a MIG instance on a card. Start is the unit of the card's memory axis where it begins, Size how many units it takes.
type CardInstance struct {
	Profile string `json:"profile"`
	Start   *int   `json:"start"`
	Size    *int   `json:"size"`
	Free    *bool  `json:"free"`
}

// usable: a card that is not known to be ill.
func (c Card) usable() bool { return c.Healthy == nil || *c.Healthy }

// PodObject is what of a pod on a node tells what it holds of the node's GPUs.
type PodObject struct {
	Namespace, Name, Node string
	Annotations           map[string]string
	// Requests are the extended resources of all its containers.
	Requests map[string]int64
}

// readFree finds what is free: units of the node by what its pods ask for, and what is known of each card.
func (r *gpuReading) readFree() {
	if r.node.Pods != nil && r.gpus.Units != nil {
		r.freeUnits()
	}
	for _, source := range cardSources {
		if cards := source(r); len(cards) > 0 {
			r.gpus.PerCard = cards
			break
		}
	}
	r.joinAgent()
	r.measureInstances()
	slices.SortStableFunc(r.gpus.PerCard, func(a, b Card) int {
		if a.Index == nil || b.Index == nil {
			return 0
		}
		return cmp.Compare(*a.Index, *b.Index)
	})
}

// cardSources tell of single cards, the most exact first: who hands parts of cards out writes down where they went.
var cardSources = []func(*gpuReading) []Card{
	(*gpuReading).hamiCards, (*gpuReading).volcanoCards, (*gpuReading).gpuMemoryCards, (*gpuReading).draCards, (*gpuReading).wholeCards,
}

func (r *gpuReading) freeUnits() {
	r.gpus.Free = map[string]int64{}
	for name, units := range r.gpus.Units {
		if resource, err := r.names.Resource(name); err == nil && resource.Role == gpuinfo.Information {
			continue
		}
		for _, pod := range r.node.Pods {
			units -= pod.Requests[name]
		}
		r.gpus.Free[name] = max(units, 0)
	}
}

// wholeCards: which card a device plugin gave away stands nowhere in the API, but how many are left does.
func (r *gpuReading) wholeCards() []Card {
	name, others := r.cardUnits()
	units, free := r.gpus.Units[name], r.gpus.Free[name]
	if r.gpus.Kind != gpuinfo.Whole || others || units <= 0 || units > mostCards || r.gpus.Free == nil || r.gpus.Cards != nil && *r.gpus.Cards < units {
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

// joinAgent adds what Heliostat's agent saw: to the cards that another source tells of, by UUID or index, or as the only source.
func (r *gpuReading) joinAgent() {
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
		r.problem(AgentOutdated, AgentAnnotation+" is not counted: "+why)
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

// withoutImpossible takes the layout off cards whose instances lie as the product's placement tables say that they cannot: the annotation is written by
// whoever may change the node.
func (r *gpuReading) withoutImpossible(report *AgentReport) {
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
			r.problem(LabelUnreadable, fmt.Sprintf("%s: card %d, a %s, cannot have these instances: %v", AgentAnnotation, card.Index, product.Name, err))
			card.MIG.Instances = nil
		}
	}
}

// agentCards are the cards of a report alone. Cards that have no identity otherwise tell what is free where that is the same for all of them.
func (r *gpuReading) agentCards(report AgentReport, anonymous []Card) []Card {
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

func (r *gpuReading) agentHealth(seen AgentCard) {
	if !seen.Healthy {
		r.problem(DeviceUnhealthy, fmt.Sprintf("the agent says that card %d is not well: %s", seen.Index, cmp.Or(seen.Problem, "no reason given")))
	}
}

func (c Card) is(seen AgentCard) bool {
	if c.UUID != nil && seen.UUID != "" {
		return *c.UUID == seen.UUID
	}
	return c.Index != nil && *c.Index == seen.Index
}

// join takes over what only NVML knows. An ill card has no room.
func (c *Card) join(seen AgentCard) {
	c.UnusedMiB = seen.FreeMiB
	if untold := seen.MIG.Enabled && seen.MIG.Instances == nil; c.Instances == nil && !untold {
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

// empty says that nothing more goes on a card.
func (c *Card) empty() {
	none := int64(0)
	c.FreeMiB, c.FreeUnits = &none, &none
	if c.FreeCores != nil {
		c.FreeCores = &none
	}
}
