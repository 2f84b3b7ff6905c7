package telemetry

import (
	"iter"
	"time"
)

// Cycle is one cycle on one RayCluster, in the values that are measured.
type Cycle struct {
	Namespace, Cluster string
	// At is when the cycle began, Took how long it lasted, Planned how long the planner took of that; both are zero where
	// the RayCluster could not be read.
	At            time.Time
	Took, Planned time.Duration
	// Failed: it could not be observed or patched. RayFailed: its GCS did not answer.
	Failed, RayFailed bool
	// SeenToPatched is zero unless this cycle patched growth.
	SeenToPatched time.Duration
	Actions       []Action
	// IdleGPUs counts the GPUs of living workers that nothing holds; it says nothing while RayFailed.
	IdleGPUs float64
	// Pods are the workers on their way and those alive; nil while RayFailed.
	Pods iter.Seq[Pod]
	// Moments tells when a pod was created and bound to a node, zero where that is not known. It is asked only about pods on their way.
	Moments func(pod string) (created, scheduled time.Time)
	// State tells what is so since this cycle. It is asked for at collections only, and not after the next cycle, so a cycle
	// costs the same however much there is to tell.
	State func() State
}

// Action is one thing done: Kind is patch, drain, report or sync, Result ok, refused, conflict or error.
type Action struct {
	Kind, Result string
	At           time.Time
	Took         time.Duration
	// Decision says in a word what a carried-out action was, and Reason is the code of why; both are empty where nothing was decided.
	Decision, Reason string
	// Group is the worker group that a patch changed, and Pods by how many pods it is larger; fewer than none where it is
	// smaller. Grown repeats the name of a group that became larger, or is empty.
	Group, Grown string
	Pods         int
}

// Pod is one worker pod. Alive: its Ray node lives.
type Pod struct {
	Name, Group string
	Alive       bool
}

// State is what is so of one RayCluster.
type State struct {
	// Managed: it may be written to.
	Managed bool
	// DataAge is negative while Ray never answered.
	DataAge time.Duration
	// Unmet counts demand that is not served by the code of its reason.
	Unmet map[string]int64
	// Demand is what waits, in Ray's units, by resource and then by state; Requested counts the bundles of request_resources by status.
	Demand    map[string]map[string]float64
	Requested map[string]int64
	// Requests counts the requests of owners by status.
	Requests map[string]int64
	Groups   []Group
	Ray      Ray
}

// Group is one worker group's numbers of pods and of GPUs.
type Group struct {
	Name                              string
	Current, Desired, Ready, Min, Max int
	// Asked is what replicas asks for; another autoscaler's wish where Heliostat only looks.
	Asked int
	// Cooldown is for how long it takes no launches yet; 0 while it takes them.
	Cooldown time.Duration
	// NumGPUs is how many GPUs one worker has, by column: declared, derived, reported, ray. What is not known is absent.
	NumGPUs map[string]float64
	// NumGPUsMismatch: a new pod announces another number than the device plugin gives it.
	NumGPUsMismatch bool
	// Slice is what one of its GPUs is; nil where that is not known.
	Slice *Slice
	// Pools are those that it can land on, where they are known.
	Pools []Pool
}

// Slice is what one GPU of a worker is. Amounts that are not known are nil.
type Slice struct {
	// Kind, Profile and Isolation are codes; Profile is empty where the GPU is no MIG instance.
	Kind, Profile, Isolation string
	MemoryBytes, Compute     *float64
}

// Pool is a pool of nodes as a group sees it. Limit is how many of its pods the pool can ever have; nil where nothing bounds it.
type Pool struct {
	Name  string
	Limit *int64
	Cards []Cards
}

// Cards count physical cards of one product: all of them, those cut with MIG, and those that pods hold something of, which is nil
// where it is not known.
type Cards struct {
	Product  string
	All, Cut int64
	Busy     *int64
}

// Ray is what Ray's own autoscaler would export. Session is Ray's session, Nodes go by node type (worker group, or headgroup).
type Ray struct {
	Session                            string
	Nodes                              map[string]NodeCounts
	ClusterResources, PendingResources map[string]float64
}

// NodeCounts counts the Ray nodes of one type.
type NodeCounts struct{ Active, Pending, Failed int }
