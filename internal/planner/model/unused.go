package model

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
