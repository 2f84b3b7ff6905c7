package planner

import (
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/internal/planner/why"
)

// Compute makes the plan. It never fails. The plan lists unserved demand with its reason. Contradictions in a snapshot,
// such as a node of a removed group, more free than total, or a minimum above the maximum, become findings. Compute
// does not change its arguments.
//
// The order is Ray's (docs/reference/facts.md#planning-order): nodes that must stop, minimums, request_resources,
// gangs, requests, and last idle nodes. Nodes that must stop take no demand.
func Compute(s Snapshot, policy Policy) Plan {
	return why.Report(place.Decide(&s, policy))
}

// Explain plans the snapshot and answers one question about the plan. It returns ErrQuestion if the question names
// nothing or several things, and an *UnknownError if the snapshot has no object of that name.
func Explain(s Snapshot, policy Policy, q Question) (Explanation, error) {
	return why.Explain(&s, policy, q)
}
