package nodegpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// AgentAnnotation is the node annotation in which `autoscaler agent` publishes what NVML says of the node's cards: an
// AgentReport as JSON.
const AgentAnnotation = "heliostat.dev/gpus"

// AgentReport is the value of AgentAnnotation: all cards of one node, in the order of their index.
type AgentReport struct {
	// At is when the cards were read. BootID is the kernel's number of this start of the machine, as it stands in the
	// node's status.nodeInfo too: a machine that started anew has no MIG instances of before, and its cards were reset.
	At     time.Time   `json:"at,omitzero"`
	BootID string      `json:"bootID,omitempty"`
	Cards  []AgentCard `json:"cards"`
}

// AgentCard is one physical card as NVML sees it.
type AgentCard struct {
	// Index is the card's number in NVML, UUID its identity (GPU-...), Product the driver's name: NVIDIA H100 80GB
	// HBM3.
	Index   int    `json:"index"`
	UUID    string `json:"uuid"`
	Product string `json:"product"`
	// MemoryMiB is the card's memory, 0 of a card that was lost before its memory was ever read. FreeMiB is what no
	// process holds at this moment, which is not what is promised to pods; null where NVML does not tell.
	MemoryMiB int64    `json:"memoryMiB"`
	FreeMiB   *int64   `json:"freeMiB"`
	MIG       AgentMIG `json:"mig"`
	// Healthy is false when work must not go there; Problem then says why, else it is empty.
	Healthy bool   `json:"healthy"`
	Problem string `json:"problem"`
}

// AgentMIG is how a card is cut. Where Enabled is false there are no instances; enabled without instances is a card
// that offers nothing.
type AgentMIG struct {
	Enabled   bool            `json:"enabled"`
	Instances []AgentInstance `json:"instances"`
}

// AgentInstance is one GPU instance: its profile as nvidia-smi writes it (1g.10gb+me), and the unit of the card's
// memory axis where it begins (`nvidia-smi mig -lgi` calls that the placement's start).
type AgentInstance struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
}

// AgentRefresh is how often an agent writes its report at least, changed or not. A report that is older than
// agentSilence is nobody's any more: that is two writes that failed, and some time for clocks that disagree.
const (
	AgentRefresh = 15 * time.Minute
	agentSilence = 3 * AgentRefresh
)

// outdated is why a report is not taken for what is now, empty where it is. Without a time (seen) only another start of
// the machine outdates it.
func (r *AgentReport) outdated(node NodeObject, seen time.Time) string {
	switch {
	case r.BootID != "" && node.BootID != "" && r.BootID != node.BootID:
		return "the machine was started anew since it was written"
	case seen.IsZero():
		return ""
	case r.At.IsZero():
		return "it does not say when it was written"
	case seen.Sub(r.At) > agentSilence:
		return fmt.Sprintf("it is older than %.0f minutes, so no agent runs there", agentSilence.Minutes())
	case r.At.Sub(seen) > agentSilence:
		return fmt.Sprintf("it is from a time more than %.0f minutes ahead: the machine's clock is wrong",
			agentSilence.Minutes())
	}
	return ""
}

// Annotation writes the report as the value of AgentAnnotation.
func (r AgentReport) Annotation() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", AgentAnnotation, err)
	}
	return string(text), nil
}

// ParseAgentReport reads the value of AgentAnnotation. The error names the card and the field that cannot be.
func ParseAgentReport(text string) (AgentReport, error) {
	var report AgentReport
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return AgentReport{}, fmt.Errorf("reading %s: %w", AgentAnnotation, err)
	}
	if report.Cards == nil {
		return AgentReport{}, fmt.Errorf("reading %s: cards is missing: want a list, empty where the node has no card",
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
		return fmt.Errorf("memoryMiB %d: want the memory of the card", c.MemoryMiB)
	case c.FreeMiB != nil && (*c.FreeMiB < 0 || *c.FreeMiB > c.MemoryMiB):
		return fmt.Errorf("freeMiB %d: want 0 to the card's %d", *c.FreeMiB, c.MemoryMiB)
	case !c.MIG.Enabled && len(c.MIG.Instances) > 0:
		return errors.New("mig.instances: there are instances on a card whose mig.enabled is false")
	}
	return nil
}
