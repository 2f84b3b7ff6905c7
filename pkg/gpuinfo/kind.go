package gpuinfo

// Kind is how a GPU is handed out.
type Kind string

// The kinds of GPUs and of shares of them.
const (
	// Whole cards.
	Whole Kind = "whole"
	// MIG instances: own memory and own compute slices.
	MIG Kind = "mig"
	// TimeSliced devices are announced several times and take turns; nothing is kept apart.
	TimeSliced Kind = "time-sliced"
	// MPS devices are announced several times; each client has a part of memory and threads.
	MPS Kind = "mps"
	// GPUMemory is handed out in units of memory of a card.
	GPUMemory Kind = "gpu-mem"
	// VGPU shares of HAMi, Volcano and Koordinator: so much memory and so many cores of a card.
	VGPU Kind = "vgpu"
	// UnknownKind where nothing tells.
	UnknownKind Kind = "unknown"
)

// Isolation is what keeps the work on one GPU, or share of it, from another's.
type Isolation string

// The isolations, the strongest first.
const (
	// Hardware: an own card or MIG instance. Memory, bandwidth and faults are apart.
	Hardware Isolation = "hardware"
	// Limit: a cap in software on memory or cores, as in MPS, cGPU and HAMi. A fault of one can end all.
	Limit Isolation = "limit"
	// NoIsolation: each sees the whole card.
	NoIsolation Isolation = "none"
	// UnknownIsolation where nothing tells.
	UnknownIsolation Isolation = "unknown"
)
