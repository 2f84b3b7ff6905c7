package nodegpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// AgentAnnotation is the node annotation in which `autoscaler agent` publishes what NVML reports about the node's
// cards: an AgentReport as JSON.
const AgentAnnotation = "heliostat.dev/gpus"

// AgentReport is the value of AgentAnnotation: all cards of one node, in the order of their index.
type AgentReport struct {
	// At is when the cards were read. BootID identifies the current boot of the machine, as in the node's
	// status.nodeInfo. A reboot resets the cards and removes their MIG instances.
	At     time.Time   `json:"at,omitzero"`
	BootID string      `json:"bootID,omitempty"`
	Cards  []AgentCard `json:"cards"`
}

// AgentCard is one physical card as NVML sees it.
type AgentCard struct {
	// Index is the card's number in NVML. UUID identifies the card (GPU-...). Product is the driver's name, such as
	// NVIDIA H100 80GB HBM3.
	Index   int    `json:"index"`
	UUID    string `json:"uuid"`
	Product string `json:"product"`
	// MemoryMiB is the card's memory, or 0 if the card was lost before its memory was read. FreeMiB is the memory that
	// no process holds at this moment, which differs from what pods may still request. It is null if NVML does not
	// report it.
	MemoryMiB int64    `json:"memoryMiB"`
	FreeMiB   *int64   `json:"freeMiB"`
	MIG       AgentMIG `json:"mig"`
	// Healthy is false if no work should go to the card; Problem then gives the reason. Otherwise Problem is empty.
	Healthy bool   `json:"healthy"`
	Problem string `json:"problem"`
}

// AgentMIG is the MIG layout of a card. If Enabled is false, there are no instances. A card with MIG enabled and no
// instances offers nothing.
type AgentMIG struct {
	Enabled   bool            `json:"enabled"`
	Instances []AgentInstance `json:"instances"`
}

// AgentInstance is one GPU instance: its profile as nvidia-smi writes it (1g.10gb+me), and the first unit of the card's
// memory axis that it occupies. `nvidia-smi mig -lgi` calls that unit the start of the placement.
type AgentInstance struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
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

// ParseAgentReport reads the value of AgentAnnotation. The error names the card and the invalid field.
func ParseAgentReport(text string) (AgentReport, error) {
	var report AgentReport
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return AgentReport{}, fmt.Errorf("reading %s: %w", AgentAnnotation, err)
	}
	if report.Cards == nil {
		return AgentReport{}, fmt.Errorf("reading %s: cards is missing: want a list, empty if the node has no card",
			AgentAnnotation)
	}
	seen := map[int]bool{}
	for i, card := range report.Cards {
		if err := card.check(); err != nil {
			return AgentReport{}, fmt.Errorf("reading %s: cards[%d]: %w", AgentAnnotation, i, err)
		}
		if seen[card.Index] {
			return AgentReport{}, fmt.Errorf("reading %s: cards[%d]: index %d occurs twice", AgentAnnotation, i,
				card.Index)
		}
		seen[card.Index] = true
	}
	return report, nil
}

func (c AgentCard) check() error {
	switch {
	case c.Index < 0:
		return fmt.Errorf("index %d: want 0 or more", c.Index)
	case c.MemoryMiB < 0 || c.MemoryMiB == 0 && c.Healthy:
		return fmt.Errorf("memoryMiB %d: want the card's memory", c.MemoryMiB)
	case c.FreeMiB != nil && (*c.FreeMiB < 0 || *c.FreeMiB > c.MemoryMiB):
		return fmt.Errorf("freeMiB %d: want 0 to %d, the card's memory", *c.FreeMiB, c.MemoryMiB)
	case !c.MIG.Enabled && len(c.MIG.Instances) > 0:
		return errors.New("mig.instances: there are instances, but mig.enabled is false")
	}
	return nil
}
