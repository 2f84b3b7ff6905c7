package gpuinfo

import "fmt"

// ACKMode is what the node label ack.node.gpu.schedule says. A node has one, and announces the resources of the others with 0.
type ACKMode string

// The modes (ACK, "Labels for enabling GPU scheduling policies").
const (
	// ACKDefault hands out whole cards as nvidia.com/gpu, ACKTopology as aliyun.com/gpu.
	ACKDefault  ACKMode = "default"
	ACKTopology ACKMode = "topology"
	// ACKMemory (cgpu) shares cards by memory and ACKCoreMemory by memory and cores, both held to by cGPU; ACKShare by memory that
	// nothing holds to.
	ACKMemory     ACKMode = "cgpu"
	ACKCoreMemory ACKMode = "core_mem"
	ACKShare      ACKMode = "share"
	// ACKMPS shares cards by memory with MPS; ACKMIG is in older documents.
	ACKMPS ACKMode = "mps"
	ACKMIG ACKMode = "mig"
)

// ParseACKMode reads the node label ack.node.gpu.schedule.
func ParseACKMode(value string) (ACKMode, error) {
	switch mode := ACKMode(value); mode {
	case ACKDefault, ACKTopology, ACKMemory, ACKCoreMemory, ACKShare, ACKMPS, ACKMIG:
		return mode, nil
	}
	return "", fmt.Errorf("reading ack.node.gpu.schedule=%q: want cgpu, core_mem, default, mps, share or topology", value)
}

// Isolation is what keeps those who share a card apart in this mode.
func (m ACKMode) Isolation() Isolation {
	switch m {
	case ACKMemory, ACKCoreMemory, ACKMPS:
		return Limit
	case ACKShare:
		return NoIsolation
	case ACKDefault, ACKTopology, ACKMIG:
		return Hardware
	}
	return UnknownIsolation
}

// ACKShared is what a pod asks for on a card that ACK shares: memory in the node's units, and percent of cores, 0 for memory alone.
type ACKShared struct {
	Memory, Cores int
}

// Check returns what ACK would not accept.
func (s ACKShared) Check() error {
	switch {
	case s.Memory <= 0:
		return fmt.Errorf("asking for %s: %d: want at least 1, also beside %s", AliyunMemory, s.Memory, AliyunCores)
	case s.Cores != 0 && (s.Cores < 5 || s.Cores > 100 || s.Cores%5 != 0):
		return fmt.Errorf("asking for %s: %d: want a multiple of 5 from 5 to 100", AliyunCores, s.Cores)
	}
	return nil
}

// ACKPlacement is the node label ack.node.gpu.placement: among the cards that fit, the fullest or the emptiest.
type ACKPlacement string

// The placements; ACKBinpack is what holds without a label.
const (
	ACKBinpack ACKPlacement = "binpack"
	ACKSpread  ACKPlacement = "spread"
)

// Card returns the index of the card that the request goes to, given what is free on each: all of it must fit on one card, whatever
// the sum over the cards. Pods with and without cores do not share a node, so the mode must be the request's. ok is false when none fits;
// the error says what is wrong with the request itself, or with the mode.
func (s ACKShared) Card(mode ACKMode, placement ACKPlacement, free []ACKShared) (card int, ok bool, err error) {
	if err := s.Check(); err != nil {
		return 0, false, err
	}
	switch {
	case mode == ACKCoreMemory && s.Cores == 0:
		return 0, false, fmt.Errorf("asking a node in mode %s for %s alone: it takes requests with %s only", mode, AliyunMemory, AliyunCores)
	case mode != ACKCoreMemory && s.Cores != 0:
		return 0, false, fmt.Errorf("asking a node in mode %s for %s: only mode %s has it", mode, AliyunCores, ACKCoreMemory)
	case mode != ACKCoreMemory && mode != ACKMemory && mode != ACKShare && mode != ACKMPS:
		return 0, false, fmt.Errorf("asking a node in mode %s for %s: it hands out whole cards", mode, AliyunMemory)
	}
	for i, f := range free {
		if f.Memory < s.Memory || f.Cores < s.Cores {
			continue
		}
		if !ok || placement == ACKSpread && f.Memory > free[card].Memory || placement != ACKSpread && f.Memory < free[card].Memory {
			card, ok = i, true
		}
	}
	return card, ok, nil
}
