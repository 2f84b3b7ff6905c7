package raydemand

import "time"

// DrainReason says why a node has to leave. The zero value is not a reason: 0 on the wire kills a live raylet
// (docs/reference/facts.md#drain-reason), so adapters refuse it before sending.
type DrainReason int

// Ray can refuse DrainIdle if the node is no longer idle. Ray always accepts DrainPreemption, and running work may
// finish.
const (
	DrainIdle       DrainReason = 1
	DrainPreemption DrainReason = 2
)

// Drain asks Ray to let a node go. Node must come from the newest State. With DrainIdle, that State must show the node
// idle, because even a refused drain marks the node's actors as preempted.
type Drain struct {
	Node    Node
	Reason  DrainReason
	Message string
	// Deadline is passed to the applications on the node. Ray never enforces it; zero means none.
	Deadline time.Time
}

// DrainReply is Ray's answer. A refusal is an answer, not an error.
type DrainReply struct {
	Accepted bool
	Message  string
}
