package planner

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/search"
)

// Compute makes the plan. It never fails: what cannot be served is told in the plan, with the reason, and what a
// snapshot says against all sense (a node of a removed group, more free than there is, a minimum above the maximum)
// is planned around and told as a finding. It changes nothing it is given.
//
// The order is Ray's (docs/reference/facts.md#planning-order): what must go, minima, request_resources, gangs, requests,
// and last what is idle. Nodes that must go take no demand.
func Compute(s model.Snapshot, policy model.Policy) model.Plan {
	p, given, out := search.Decide(nil, &s, policy)
	return newReporter(p).report(given, out)
}
