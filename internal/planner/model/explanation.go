package model

// Explanation says what a plan does with one demand, group or pod, and why.
type Explanation struct {
	About string `json:"about"`
	Reason
	// Details cover each group, demand and pod that was considered.
	Details []Detail `json:"details"`
}

// Detail is one object that was considered.
type Detail struct {
	About string `json:"about"`
	Reason
}

// The disposition of demand, in addition to the codes of unmet demand.
const (
	DispositionServed    = "served"    // fits on running nodes
	DispositionWaiting   = "waiting"   // counts on pods that were requested earlier
	DispositionLaunching = "launching" // counts on pods that the plan launches
)

// The state of a pod, in addition to the codes of a termination.
const (
	PodBusy    = "busy"       // has work
	PodIdle    = "idle_stays" // is idle and stays for now
	PodPending = "on_the_way" // has not joined Ray yet
	PodLeaving = "leaving"    // is draining or being deleted
	PodGivenUp = "given_up"   // did not join in time and does not count
	PodRemoved = "group_gone" // its group is not in the snapshot
	PodHead    = "head"       // serves demand and is never stopped
	PodRoom    = "room"       // how many more bundles it has room for
)

// What keeps a pod busy that runs nothing, in addition to CodeHoldsObjects and CodeReserved.
const (
	PodArguments   = "awaits_arguments" // a task waits on it for its arguments
	PodUnexplained = "unexplained"      // Ray reports a cause that Heliostat does not know
)
