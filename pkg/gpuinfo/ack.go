package gpuinfo

import "fmt"

// ACKMode is the value of the node label ack.node.gpu.schedule. A node has one mode, and announces the resources of the
// other modes with quantity 0.
type ACKMode string

// The modes (ACK, "Labels for enabling GPU scheduling policies").
const (
	// ACKDefault allocates whole cards as nvidia.com/gpu, ACKTopology as aliyun.com/gpu.
	ACKDefault  ACKMode = "default"
	ACKTopology ACKMode = "topology"
	// ACKMemory (cgpu) shares cards by memory, and ACKCoreMemory by memory and cores; cGPU enforces both. ACKShare
	// shares cards by memory, and nothing enforces the limit.
	ACKMemory     ACKMode = "cgpu"
	ACKCoreMemory ACKMode = "core_mem"
	ACKShare      ACKMode = "share"
	// ACKMPS shares cards by memory with MPS. Only older documents mention ACKMIG.
	ACKMPS ACKMode = "mps"
	ACKMIG ACKMode = "mig"
)

// ParseACKMode parses the value of the node label ack.node.gpu.schedule.
func ParseACKMode(value string) (ACKMode, error) {
	switch mode := ACKMode(value); mode {
	case ACKDefault, ACKTopology, ACKMemory, ACKCoreMemory, ACKShare, ACKMPS, ACKMIG:
		return mode, nil
	}
	return "", fmt.Errorf("reading ack.node.gpu.schedule=%q: want cgpu, core_mem, default, mps, share or topology",
		value)
}

// Isolation returns the isolation between pods that share a card in this mode.
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

// ACKShared is a pod's request on a card that ACK shares: memory in the units of the node, and a percentage of the
// cores, which is 0 if the pod requests only memory.
type ACKShared struct {
	Memory, Cores int
}

// Check returns an error if ACK does not accept the request.
func (s ACKShared) Check() error {
	switch {
	case s.Memory <= 0:
		return fmt.Errorf("asking for %s: %d: want at least 1, also beside %s", AliyunMemory, s.Memory, AliyunCores)
	case s.Cores != 0 && (s.Cores < 5 || s.Cores > 100 || s.Cores%5 != 0):
		return fmt.Errorf("asking for %s: %d: want a multiple of 5 from 5 to 100", AliyunCores, s.Cores)
	}
	return nil
}

// ACKPlacement is the value of the node label ack.node.gpu.placement. It selects the fullest or the emptiest of the
// cards that fit.
type ACKPlacement string

// The placements. ACKBinpack is the default without the label.
const (
	ACKBinpack ACKPlacement = "binpack"
	ACKSpread  ACKPlacement = "spread"
)
