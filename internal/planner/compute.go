package planner

import (
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/report"
	"heliostat.dev/heliostat/internal/planner/search"
)

// Compute makes the plan. It never fails: what cannot be served is in the plan, with the reason, and what a snapshot
// says against all sense (a node of a removed group, more free than there is, a minimum above the maximum) is planned
// around and reported as a finding. It changes nothing it is given.
//
// The order is Ray's (docs/reference/facts.md#planning-order): what must go, minima, request_resources, gangs,
// requests, and last what is idle. Nodes that must go take no demand.
func Compute(s Snapshot, policy Policy) Plan { return planUntil(nil, s, policy) }

// ComputeUntil is Compute, but gives up soon after stop is closed; then it reports false and there is no plan. Use it
// for plans whose caller may stop waiting. A nil stop never ends it.
func ComputeUntil(stop <-chan struct{}, s Snapshot, policy Policy) (plan Plan, done bool) {
	done = placing.UnlessBrokenOff(func() { plan = planUntil(stop, s, policy) })
	return plan, done
}

func planUntil(stop <-chan struct{}, s Snapshot, policy Policy) Plan {
	decision, launched, outcome := search.Decide(stop, &s, policy)
	return report.New(decision).Report(launched, outcome)
}

// Explain plans the snapshot and answers one question about the plan. It gives up soon after stop is closed, with
// ErrBrokenOff; a nil stop never ends it. It fails with ErrQuestion if the question asks for nothing or for several
// things, and with an *UnknownError if the snapshot does not have what it names.
func Explain(stop <-chan struct{}, s Snapshot, policy Policy, q Question) (Explanation, error) {
	return report.Explain(stop, s, policy, q)
}
