package gpuinfo

import "fmt"

// ACKMode is what the node label ack.node.gpu.schedule says. A node has one, and announces the resources of the others
// with 0.
type ACKMode string

// The modes (ACK, "Labels for enabling GPU scheduling policies").
const (
	// ACKDefault hands out whole cards as nvidia.com/gpu, ACKTopology as aliyun.com/gpu.
	ACKDefault  ACKMode = "default"
	ACKTopology ACKMode = "topology"
	// ACKMemory (cgpu) shares cards by memory and ACKCoreMemory by memory and cores, both held to by cGPU; ACKShare by
	// memory that nothing holds to.
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
	return "", fmt.Errorf("reading ack.node.gpu.schedule=%q: want cgpu, core_mem, default, mps, share or topology",
		value)
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

// ACKShared is what a pod asks for on a card that ACK shares: memory in the node's units, and percent of cores, 0 for
// memory alone.
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
