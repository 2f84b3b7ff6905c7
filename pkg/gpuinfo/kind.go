package gpuinfo

// Kind is how a GPU is shared.
type Kind string

// The kinds of GPUs and of shares of GPUs.
const (
	// Whole is a whole card.
	Whole Kind = "whole"
	// WholeUnproven is what a plain resource name such as nvidia.com/gpu looks like: a whole card, but nothing proves
	// that it is not a share of one. It can be used as a GPU, and guarantees no memory, compute or isolation.
	WholeUnproven Kind = "whole (unproven)"
	// MIG is a MIG instance, with its own memory and compute slices.
	MIG Kind = "mig"
	// MIGUnproven is what a plain resource name beside left-over names of MIG instances looks like: an instance of the
	// single strategy. It guarantees no more than WholeUnproven.
	MIGUnproven Kind = "mig (unproven)"
	// TimeSliced is a device that is announced several times, and whose clients take turns. There is no isolation.
	TimeSliced Kind = "time-sliced"
	// MPS is a device that is announced several times. Each client has a part of the memory and threads.
	MPS Kind = "mps"
	// GPUMemory is memory of a card, requested in units.
	GPUMemory Kind = "gpu-mem"
	// VGPU is a share from HAMi, Volcano or Koordinator: an amount of memory and of cores of a card.
	VGPU Kind = "vgpu"
	// UnknownKind is the kind if nothing shows it.
	UnknownKind Kind = "unknown"
	// NoGPU and Elsewhere are kinds that only the configuration has, for resources that are no GPUs. Nodes do not bound
	// the pods that request one of the kind Elsewhere, because an extender of the scheduler counts it.
	NoGPU     Kind = "none"
	Elsewhere Kind = "elsewhere"
)

// Isolation is what separates work on one GPU, or on a share of it, from other work.
type Isolation string

// The isolations, strongest first.
const (
	// Hardware isolates with a separate card or MIG instance: memory, bandwidth and faults are separate.
	Hardware Isolation = "hardware"
	// Limit isolates with software that limits memory or cores, as in MPS, cGPU and HAMi. A fault of one client can end
	// all clients.
	Limit Isolation = "limit"
	// NoIsolation does not isolate: each client has access to the whole card.
	NoIsolation Isolation = "none"
	// UnknownIsolation is the isolation if nothing shows it.
	UnknownIsolation Isolation = "unknown"
)
