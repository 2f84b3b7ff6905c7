package telemetry

import (
	"iter"
	"time"
)

// Cycle is one cycle on one RayCluster, as the values that are measured.
type Cycle struct {
	Namespace, Cluster string
	// At is when the cycle began, Took how long it lasted, Planned how much of that the planner took; both are zero if
	// the RayCluster could not be read.
	At            time.Time
	Took, Planned time.Duration
	// Failed: the RayCluster could not be read or patched. RayFailed: its GCS did not answer.
	Failed, RayFailed bool
	// SeenToPatched is zero unless this cycle patched growth.
	SeenToPatched time.Duration
	Actions       []Action
	// IdleGPUs counts the GPUs of living workers that nothing holds; it is meaningless if RayFailed.
	IdleGPUs float64
	// Pods are the workers on their way and those alive; nil if RayFailed.
	Pods iter.Seq[Pod]
	// Moments returns when a pod was created and bound to a node, zero if unknown. It is called only for pods on their
	// way.
	Moments func(pod string) (created, scheduled time.Time)
	// State returns the state since this cycle. It is called only during collections, and not after the next cycle, so
	// that the cost of a cycle does not depend on the size of the state.
	State func() State
}

// Action is one action: Kind is patch, drain, report or sync, Result ok, refused, conflict or error.
type Action struct {
	Kind, Result string
	At           time.Time
	Took         time.Duration
	// Decision is a word for a successful action, and Reason the code of its reason; both are empty if nothing was
	// decided.
	Decision, Reason string
	// Group is the worker group that a patch changed, and Pods by how many pods it grew; negative if it shrank. Grown
	// repeats the name of a group that grew, or is empty.
	Group, Grown string
	Pods         int
}

// Pod is one worker pod. Alive: its Ray node lives.
type Pod struct {
	Name, Group string
	Alive       bool
}

// State is the state of one RayCluster.
type State struct {
	// Managed: Heliostat may write to it.
	Managed bool
	// DataAge is negative if Ray has never answered.
	DataAge time.Duration
	// Unmet counts unmet demand by the code of its reason.
	Unmet map[string]int64
	// Demand is the waiting demand in Ray's units, by resource and then by state; Requested counts the bundles of
	// request_resources by status.
	Demand    map[string]map[string]float64
	Requested map[string]int64
	// Requests counts ResourceRequests by status.
	Requests map[string]int64
	Groups   []Group
	Ray      Ray
}

// Group is one worker group's numbers of pods and of GPUs.
type Group struct {
	Name                              string
	Current, Desired, Ready, Min, Max int
	// Asked is what replicas asks for; another autoscaler's goal in shadow mode.
	Asked int
	// Cooldown is for how long it gets no launches; 0 if it gets them.
	Cooldown time.Duration
	// NumGPUs is the number of GPUs of one worker, by column: declared, derived, reported, ray. Unknown ones are
	// absent.
	NumGPUs map[string]float64
	// NumGPUsMismatch: a new pod would announce another number than the device plugin gives it.
	NumGPUsMismatch bool
	// Slice is what one of its GPUs is; nil if unknown.
	Slice *Slice
	// Pools are the pools that its pods can be scheduled on, if known.
	Pools []Pool
}

// Slice is what one GPU of a worker is. Unknown amounts are nil.
type Slice struct {
	// Kind, Profile and Isolation are codes; Profile is empty if the GPU is no MIG instance.
	Kind, Profile, Isolation string
	MemoryBytes, Compute     *float64
}

// Pool is a pool of nodes from the view of a group. Limit is how many of its pods the pool can ever have; nil if
// nothing bounds it.
type Pool struct {
	Name  string
	Limit *int64
	Cards []Cards
}

// Cards count physical cards of one product: all of them, those partitioned with MIG, and those that pods use, which
// is nil if unknown.
type Cards struct {
	Product  string
	All, Cut int64
	Busy     *int64
}

// Ray is what Ray's own autoscaler would export. Session is Ray's session; the keys of Nodes are node types (worker
// group, or headgroup).
type Ray struct {
	Session                            string
	Nodes                              map[string]NodeCounts
	ClusterResources, PendingResources map[string]float64
}

// NodeCounts counts the Ray nodes of one type.
type NodeCounts struct{ Active, Pending, Failed int }
