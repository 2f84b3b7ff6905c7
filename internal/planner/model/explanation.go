package model

// Explanation says what a plan does with one demand, one group or one pod, and why.
type Explanation struct {
	About string `json:"about"`
	Reason
	// Details say it of each group, demand and pod that was considered.
	Details []Detail `json:"details"`
}

// Detail is one thing that was considered.
type Detail struct {
	About string `json:"about"`
	Reason
}

// What becomes of a demand, beside the codes of unmet demand.
const (
	FateServed    = "served"    // fits on what runs now
	FateWaiting   = "waiting"   // counts on pods that were asked for earlier
	FateLaunching = "launching" // counts on pods that the plan launches
)

// What a pod is, beside the codes of a termination.
const (
	PodBusy    = "busy"       // has work
	PodIdle    = "idle_stays" // is idle and stays for now
	PodPending = "on_the_way" // has not joined Ray yet
	PodLeaving = "leaving"    // is drained or being deleted
	PodGivenUp = "given_up"   // did not join in time and counts for nothing
	PodRemoved = "group_gone" // its group is not in the snapshot
	PodHead    = "head"       // serves demand and is never stopped
	PodRoom    = "room"       // has this much room now
)
