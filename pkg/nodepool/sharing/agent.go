package sharing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// AgentAnnotation is the node annotation in which `autoscaler agent` publishes what NVML reports about the node's
// cards: an AgentReport as JSON.
const AgentAnnotation = "heliostat.dev/gpus"

// AgentReport is the value of AgentAnnotation: all cards of one node, in the order of their index.
type AgentReport struct {
	// At is when the cards were read. BootID identifies the current boot of the machine, as in the node's
	// status.nodeInfo. A reboot resets the cards and removes their MIG instances.
	At     time.Time      `json:"at,omitzero"`
	BootID string         `json:"bootID,omitempty"`
	Cards  []gpuinfo.Card `json:"cards"`
}

// AgentRefresh is the longest time between two writes of a report, changed or not. A report older than agentSilence is
// ignored: that allows for two failed writes and for clocks that differ.
const (
	AgentRefresh = 15 * time.Minute
	agentSilence = 3 * AgentRefresh
)

// outdated returns why a report does not describe the present, or nothing if it does. If seen is zero, only a reboot
// makes a report outdated.
func (r *AgentReport) outdated(node NodeObject, seen time.Time) string {
	switch {
	case r.BootID != "" && node.BootID != "" && r.BootID != node.BootID:
		return "the machine has rebooted since it was written"
	case seen.IsZero():
		return ""
	case r.At.IsZero():
		return "it has no time"
	case seen.Sub(r.At) > agentSilence:
		return fmt.Sprintf("it is older than %.0f minutes, so no agent is running there", agentSilence.Minutes())
	case r.At.Sub(seen) > agentSilence:
		return fmt.Sprintf("its time is more than %.0f minutes ahead: the machine's clock is wrong",
			agentSilence.Minutes())
	}
	return ""
}

// Annotation returns the report as the value of AgentAnnotation.
func (r AgentReport) Annotation() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", AgentAnnotation, err)
	}
	return string(text), nil
}

// ParseAgentReport reads the value of AgentAnnotation.
func ParseAgentReport(text string) (report AgentReport, err error) {
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return AgentReport{}, fmt.Errorf("reading %s: %w", AgentAnnotation, err)
	}
	if report.Cards == nil {
		return AgentReport{}, fmt.Errorf("reading %s: cards is missing: want a list, empty if the node has no card",
			AgentAnnotation)
	}
	return report, nil
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
		if !known || card.Cut == nil {
			continue
		}
		if err := product.Check(card.Cut.Layout()); err != nil {
			r.problem(LabelUnreadable, fmt.Sprintf("%s: card %d, a %s, cannot have these instances: %v",
				AgentAnnotation, card.Index, product.Name, err))
			card.Cut.Instances = nil
		}
	}
}

// agentCards returns the cards of a report alone. If the other source's cards have no identity, its free amounts are
// used only if they are equal on all cards.
func (r *reading) agentCards(report AgentReport, anonymous []Card) []Card {
	cards := make([]Card, 0, len(report.Cards))
	for _, seen := range report.Cards {
		card := Card{Index: &seen.Index, Source: "agent"}
		if seen.Memory != nil && *seen.Memory > 0 {
			card.MemoryMiB = new(int64(*seen.Memory))
		}
		if seen.UUID != "" {
			card.UUID = &seen.UUID
		}
		if n := len(anonymous); n == len(report.Cards) && *anonymous[0].FreeUnits == *anonymous[n-1].FreeUnits {
			left := *anonymous[0].FreeUnits
			card.FreeUnits, card.FreeMiB = &left, new(value(card.MemoryMiB)*left)
		}
		card.join(seen)
		cards = append(cards, card)
		r.agentHealth(seen)
	}
	return cards
}

func (r *reading) agentHealth(seen gpuinfo.Card) {
	if !seen.Healthy {
		r.problem(DeviceUnhealthy, fmt.Sprintf("the agent reports card %d as unhealthy: %s", seen.Index,
			cmp.Or(seen.Problem, "no reason given")))
	}
}

func (c Card) is(seen gpuinfo.Card) bool {
	if c.UUID != nil && seen.UUID != "" {
		return *c.UUID == seen.UUID
	}
	return c.Index != nil && *c.Index == seen.Index
}

// join adds what only NVML knows. An unhealthy card has no room.
func (c *Card) join(seen gpuinfo.Card) {
	if seen.Free != nil {
		c.UnusedMiB = new(int64(*seen.Free))
	}
	cut := value(seen.Cut)
	if unknown := cut.Enabled && cut.Instances == nil; c.Instances == nil && !unknown {
		c.Instances = []CardInstance{}
		for _, instance := range cut.Layout() {
			c.Instances = append(c.Instances, CardInstance{Profile: instance.Profile, Start: &instance.Start})
		}
	}
	if c.Healthy == nil || !seen.Healthy {
		c.Healthy = &seen.Healthy
	}
	c.Problem = cmp.Or(c.Problem, seen.Problem)
	if !seen.Healthy {
		c.empty()
	}
}

// agentReport returns what Heliostat's agent wrote about the node, unless that is invalid or outdated.
func (r *reading) agentReport() (AgentReport, bool) {
	text := r.node.Annotations[AgentAnnotation]
	if text == "" {
		return AgentReport{}, false
	}
	if r.report == nil {
		report, err := ParseAgentReport(text)
		if err != nil || report.outdated(r.node, r.at) != "" {
			report = AgentReport{}
		}
		r.report = &report
	}
	return *r.report, len(r.report.Cards) > 0
}

func (r *reading) agentSeesMIG() bool {
	report, _ := r.agentReport()
	return slices.ContainsFunc(report.Cards, func(card gpuinfo.Card) bool { return value(card.Cut).Enabled })
}

// value returns what a pointer is to, and the zero value for nil.
// someOf reports whether an entry of a map is one of those that are looked for.
func someOf[K comparable, V any](all map[K]V, is func(K, V) bool) bool {
	for key, value := range all {
		if is(key, value) {
			return true
		}
	}
	return false
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
