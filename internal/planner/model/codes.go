package model

// FindingPoolWithoutNodes reports that a pool of a snapshot has none of its nodes and no shape.
const FindingPoolWithoutNodes = "pool-without-nodes"

// Reasons of a Termination.
const (
	StopIdle       = "idle"
	StopMaxGroup   = "max_group"
	StopMaxWorkers = "max_workers"
	StopOutdated   = "outdated"
)

// Codes of the reasons in a group's row. They are stable; the sentences next to them can change.
const (
	CodeLaunch        = "launch"         // pods are launched, and for what
	CodeNotNeeded     = "not_needed"     // no waiting demand needs another pod of this group
	CodeAtMax         = "at_max"         // demand is waiting, and the group is at its maximum
	CodeMaxWorkers    = "max_workers"    // demand is waiting, and all groups together are at their bound
	CodeConservative  = "conservative"   // demand is waiting for upscalingMode Conservative to allow more pods
	CodeInFlight      = "in_flight"      // demand is waiting for an in-flight cap to allow more pods on the way
	CodeTooMany       = "too_many"       // demand that is too much for this plan is waiting for its turn
	CodeClosed        = "closed"         // the group is closed to launches until somebody corrects its configuration
	CodeCoolingDown   = "cooling_down"   // the group takes no launches for a while because its last ones failed
	CodeTooSmall      = "too_small"      // its pods are too small for the waiting demand
	CodeLabels        = "labels"         // its labels do not match the waiting demand
	CodeNotChosen     = "not_chosen"     // it could serve the demand, but another group was chosen
	CodeInvalidLimits = "invalid_limits" // minReplicas is above maxReplicas
	CodeOnTheWay      = "on_the_way"     // requested pods have not joined Ray yet
	CodeNotInFull     = "not_in_full"    // a gang or call of request_resources cannot be served in full
	CodeStop          = "stop"           // pods are stopped, and why
	CodeIdle          = "idle"           // workers are idle and stay for now, and why
	CodeTrying        = "trying"         // one replica is launched to find out whether a node or its labels suit
	CodeProvisioning  = "provisioning"   // pods are launched once a ProvisioningRequest has brought all their nodes
	CodeHeldOver      = "held_over"      // idle workers serve a request until their replacements have joined Ray
	CodeWarm          = "warm"           // workers are kept or launched so that they are free, by a capacity policy
	CodeSchedule      = "schedule"       // the same, and a schedule of the policy says how many
)

// Codes of what a plan does for an entry of warm capacity, beside those of groups.
const (
	WarmDemandFirst = "demand_first" // demand waits for what warm capacity would take
	WarmNoGroup     = "no_group"     // there is no such group
	WarmImpossible  = "impossible"   // no group could ever serve it
)

// FindingWarmImpossible is the code of a finding: no worker group could ever hold a bundle of the policy. Package
// capacity has the others about policies.
const FindingWarmImpossible = "warm-impossible"

// Codes of what keeps workers from being idle although no work uses their resources.
const (
	CodeUncounted    = "uncounted_work" // their tasks or actors hold no resources
	CodeHoldsObjects = "holds_objects"  // they run nothing; their object stores hold primary copies of objects
	CodeReserved     = "reserved"       // they run nothing; placement groups reserve their resources
)

// Codes of the reasons why a group's GPUs do not meet a requirement.
const (
	CodeSliceTooSmall = "slice_too_small" // they have too little memory or compute
	CodeSliceUnknown  = "slice_unknown"   // a required property of theirs is unknown
	CodeIsolation     = "isolation"       // they are not isolated as required
)

// CodePoolCeiling reports that demand is waiting, and the group's node pools have no room for more of its pods, even at
// their maximum size.
const CodePoolCeiling = "pool_ceiling"

// CodePoolPromised reports that demand is waiting, and the room that is left on the group's node pools is promised to
// pods of other RayClusters, which come first.
const CodePoolPromised = "pool_promised"

// CodeQuota reports that demand is waiting, and the quota of the RayCluster has no room for more pods of the group.
const CodeQuota = "quota"

// CodeScaleGate reports that demand is waiting, and another controller keeps the group from growing.
const CodeScaleGate = "scale_gate"

// Codes of the findings in a plan.
const (
	// FindingOverstated: a node reports more available than total.
	FindingOverstated = "available-over-total"
	// FindingUnreported: a node that has joined reports no resources; it counts with its group's.
	FindingUnreported = "resources-unreported"
	// FindingGroupRemoved: a pod belongs to a group that the RayCluster no longer has.
	FindingGroupRemoved = "group-removed"
	// FindingMinAboveMax: a group's minReplicas is above its maxReplicas. The reader of RayClusters reports the same
	// code and closes the group.
	FindingMinAboveMax = "min-above-max"
)

// FindingUnpriced reports a group without a price that could serve the same work as groups with one, so that their
// prices do not count.
const FindingUnpriced = "price-missing"

// FindingSlicesUnknown reports demand with requirements for GPU memory, compute or isolation, although no group's GPUs
// are known.
const FindingSlicesUnknown = "slices-unknown"

// FindingKeyUnknown reports an unknown key in a snapshot file.
const FindingKeyUnknown = "key-unknown"

// Why GPUs of workers that have joined Ray are unused, in addition to PodArguments, PodUnexplained, CodeUncounted,
// CodeHoldsObjects and CodeReserved. The values are labels of a metric.
const (
	// The worker is idle.
	UnusedTimeout   = "idle_timeout"    // its idle timeout is not over
	UnusedNoTimeout = "no_idle_timeout" // it has no idle timeout
	UnusedMinimum   = "minimum"         // its timeout is over, and its group is not above its minimum
	UnusedWarm      = "warm"            // a capacity policy keeps it free, and nothing else does
	UnusedKept      = "kept"            // its timeout is over, and a request or waiting demand is placed on it
	UnusedReplica   = "replica"         // its timeout is over, and a host of its replica is not idle

	// The worker is busy.
	UnusedStarting = "starting"  // Ray has not reported yet what it does
	UnusedOtherUse = "other_use" // its work uses none of its GPUs
	UnusedFragment = "fragment"  // its work uses a part of its GPUs, and demand for GPUs waits that is not placed
	UnusedNoDemand = "no_demand" // its work uses a part of its GPUs, and no demand for GPUs waits
	UnusedLeaving  = "leaving"   // idle or busy: the plan stops it, it drains, or it is being deleted
)
