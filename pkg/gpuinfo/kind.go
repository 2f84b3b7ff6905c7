package gpuinfo

// Kind is how a GPU is shared.
type Kind string

// The kinds of GPUs and of shares of them.
const (
	// Whole cards.
	Whole Kind = "whole"
	// MIG instances: own memory and own compute slices.
	MIG Kind = "mig"
	// TimeSliced devices are announced several times and take turns; there is no isolation.
	TimeSliced Kind = "time-sliced"
	// MPS devices are announced several times; each client has a part of memory and threads.
	MPS Kind = "mps"
	// GPUMemory is requested in units of a card's memory.
	GPUMemory Kind = "gpu-mem"
	// VGPU shares of HAMi, Volcano and Koordinator: an amount of memory and of cores of a card.
	VGPU Kind = "vgpu"
	// UnknownKind if nothing shows the kind.
	UnknownKind Kind = "unknown"
)

// Isolation is what separates the work on one GPU, or share of it, from other work.
type Isolation string

// The isolations, the strongest first.
const (
	// Hardware: a card or MIG instance of its own. Memory, bandwidth and faults are separate.
	Hardware Isolation = "hardware"
	// Limit: software limits memory or cores, as in MPS, cGPU and HAMi. A fault of one client can end all.
	Limit Isolation = "limit"
	// NoIsolation: each client sees the whole card.
	NoIsolation Isolation = "none"
	// UnknownIsolation if nothing shows it.
	UnknownIsolation Isolation = "unknown"
)
