package model

// FindingPoolWithoutNodes says that a pool of a snapshot is of none of the nodes beside it, and has no shape.
const FindingPoolWithoutNodes = "pool-without-nodes"

// Reasons of a Termination.
const (
	StopIdle       = "idle"
	StopMaxGroup   = "max_group"
	StopMaxWorkers = "max_workers"
	StopOutdated   = "outdated"
)

// Codes of the reasons in a group's row. They are stable; the sentences beside them are for people.
const (
	CodeLaunch        = "launch"         // pods are launched, and for what
	CodeNotNeeded     = "not_needed"     // nothing that waits needs another pod of this group
	CodeAtMax         = "at_max"         // demand waits, the group is at its maximum
	CodeMaxWorkers    = "max_workers"    // demand waits, all groups together are at their bound
	CodeConservative  = "conservative"   // demand waits, upscalingMode Conservative has enough on the way
	CodeInFlight      = "in_flight"      // demand waits, and follows when pods that are on their way have joined: no more may be at once
	CodeClosed        = "closed"         // the group takes no launches until somebody mends it
	CodeCoolingDown   = "cooling_down"   // the group takes no launches for a while because its last ones failed
	CodeTooSmall      = "too_small"      // its pods have too little for what waits
	CodeLabels        = "labels"         // its labels do not match what waits
	CodeNotChosen     = "not_chosen"     // it could have served, another group was taken
	CodeInvalidLimits = "invalid_limits" // minReplicas above maxReplicas
	CodeOnTheWay      = "on_the_way"     // pods asked for have not joined Ray yet
	CodeNotInFull     = "not_in_full"    // a gang or a call of request_resources cannot be had in full, so nothing is launched for it
	CodeStop          = "stop"           // pods are stopped, and why
	CodeIdle          = "idle"           // workers are idle and stay for now, and why
	CodeHeldOver      = "held_over"      // idle workers serve a request and stay until those that the plan counts on in their stead have joined Ray
)

// Codes of the reasons why a group's GPUs are not for some demand.
const (
	CodeSliceTooSmall = "slice_too_small" // they have too little memory or compute for what waits
	CodeSliceUnknown  = "slice_unknown"   // what waits asks of them what is not known of them
	CodeIsolation     = "isolation"       // they are not kept apart from others as what waits needs it
)

// CodePoolCeiling says that demand waits, and the pools of nodes that the group can land on have no room for more of
// its pods, grown as far as they may.
const CodePoolCeiling = "pool_ceiling"

// Codes of the findings in a plan.
const (
	// FindingOverstated: a node reports more free than it has in total.
	FindingOverstated = "available-over-total"
	// FindingUnreported: a node that has joined says nothing of what it has; it counts as what its group brings.
	FindingUnreported = "resources-unreported"
	// FindingGroupRemoved: a pod of a group that the RayCluster does not list any more.
	FindingGroupRemoved = "group-removed"
	// FindingMinAboveMax: a group's minReplicas is above its maxReplicas. The reader of RayClusters reports it by the same
	// code and closes the group.
	FindingMinAboveMax = "min-above-max"
)

// FindingUnpriced is the code of a finding: a group without a price could serve the same work as groups with one, whose
// prices do not count therefore.
const FindingUnpriced = "price-missing"

// FindingSlicesUnknown says that demand asks for memory, compute or isolation of its GPUs, and of no group it is known
// what they are.
const FindingSlicesUnknown = "slices-unknown"

// FindingTooManyRequests says that a RayCluster has more requests of owners, or these more shapes, than a plan takes
// in.
const FindingTooManyRequests = "too-many-requests"

// FindingKeyUnknown says that a snapshot file has a key that nobody reads.
const FindingKeyUnknown = "key-unknown"
