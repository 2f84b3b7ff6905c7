package telemetry

import (
	"iter"
	"time"
)

// Cycle is the measurable result of one cycle on one RayCluster.
type Cycle struct {
	Namespace, Cluster string
	// At is the start of the cycle and Took its duration. Parts of it are Planned, which the planner used, and Waited,
	// for which plans waited for large plans of other RayClusters. All are zero if the RayCluster could not be read.
	At                    time.Time
	Took, Planned, Waited time.Duration
	// Failed is true if the RayCluster could not be read or patched. RayFailed is true if its GCS did not respond.
	Failed, RayFailed bool
	// Truncated is true if the reading of Ray lacks some of the demand, because there is too much of it.
	Truncated bool
	// Reverted is true if another field manager has changed replicas since Heliostat wrote them.
	Reverted bool
	// SeenToPatched is zero unless this cycle patched growth.
	SeenToPatched time.Duration
	Actions       []Action
	// IdleGPUs counts the GPUs of living workers that no work uses, by cause: codes, so that they are few. Ignore it if
	// RayFailed is true.
	IdleGPUs map[string]float64
	// Pods are the pending workers and the living ones; nil if RayFailed is true.
	Pods iter.Seq[Pod]
	// Moments returns the time of a pod's creation and the time of its binding to a node; zero if unknown. It is called
	// only for pending pods.
	Moments func(pod string) (created, scheduled time.Time)
	// State returns the state after this cycle. It is called only during collections, and not after the next cycle. The
	// cost of a cycle therefore does not depend on the size of the state.
	State func() State
	// Costs returns what the RayCluster has spent since this process began. It is called only during collections. It is
	// nil if nobody adds that up.
	Costs func() []Cost
}

// Cost is what one RayCluster has spent for one group, owner, Ray job and cause. No value ever falls.
type Cost struct {
	// Group, Owner and Job are names, which whoever counts bounds. Cause and Currency are codes.
	Group, Owner, Job, Cause, Currency string
	PodSeconds, GPUSeconds, Money      float64
}

// Action is one action. Kind is patch, drain, report, config, sync or guard. Result is ok, refused, conflict or error.
type Action struct {
	Kind, Result string
	At           time.Time
	Took         time.Duration
	// Decision is a code for a successful action, and Reason is the code of its reason. Both are empty if there was no
	// decision.
	Decision, Reason string
	// Group is the worker group that a patch changed, and Pods is the number of added pods, negative if the group
	// shrank. Grown is the name of a group that grew, or empty.
	Group, Grown string
	Pods         int
}

// Pod is one worker pod. Alive is true if its Ray node is alive.
type Pod struct {
	Name, Group string
	Alive       bool
}

// State is the state of one RayCluster.
type State struct {
	// Managed is true if Heliostat can write to the RayCluster.
	Managed bool
	// DataAge is the age of Ray's data at the collection; negative if Ray has never responded.
	DataAge time.Duration
	// Unmet counts unmet demand by the code of its reason.
	Unmet map[string]int64
	// Going counts the workers whose machine is about to go, by sign.
	Going map[string]int64
	// Guarded counts the pods that node autoscalers do not evict, by who guards them.
	Guarded map[string]int64
	// Demand is the waiting demand in Ray's units, by resource and then by state. Requested counts the bundles of
	// request_resources by status.
	Demand    map[string]map[string]float64
	Requested map[string]int64
	// Requests counts ResourceRequests by status.
	Requests map[string]int64
	Groups   []Group
	Ray      Ray
}

// Group has the numbers of pods and GPUs of one worker group.
type Group struct {
	Name                              string
	Current, Desired, Ready, Min, Max int
	// Asked is the value of replicas; in shadow mode, it is the target of another autoscaler.
	Asked int
	// Cooldown is the remaining time without launches; 0 if the group can launch pods.
	Cooldown time.Duration
	// NumGPUs is the number of GPUs of one worker by source: declared, derived, reported, ray. Unknown numbers are
	// absent.
	NumGPUs map[string]float64
	// NumGPUsMismatch is true if a new pod would report a number that differs from what the device plugin allocates.
	NumGPUsMismatch bool
	// Slice describes one of its GPUs; nil if unknown.
	Slice *Slice
	// Pools are the pools that its pods can run on, if known.
	Pools []Pool
}

// Slice describes one GPU of a worker. Unknown amounts are nil.
type Slice struct {
	// Kind, Profile and Isolation are codes. Profile is empty if the GPU is not a MIG instance.
	Kind, Profile, Isolation string
	MemoryBytes, Compute     *float64
}

// Pool is a pool of nodes for a group. Limit is the maximum number of the group's pods in the pool; nil if there is no
// limit.
type Pool struct {
	Name  string
	Limit *int64
	Cards []Cards
}

// Cards counts the physical cards of one product: all cards, the cards partitioned with MIG, and the cards that pods
// use (nil if unknown).
type Cards struct {
	Product  string
	All, Cut int64
	Busy     *int64
}

// Ray has the values that Ray's own autoscaler exports. Session is Ray's session. The keys of Nodes are node types: a
// worker group, or headgroup.
type Ray struct {
	Session                            string
	Nodes                              map[string]NodeCounts
	ClusterResources, PendingResources map[string]float64
}

// NodeCounts counts the Ray nodes of one type.
type NodeCounts struct{ Active, Pending, Failed int }
