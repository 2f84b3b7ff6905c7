package search

import (
	"heliostat.dev/heliostat/internal/planner/placing"
)

// A plan is the best of several, because no single way of planning is best for every demand. The two lists below are
// all ways that are tried, in this order, with the reason for each row. The verdict (verdict.go) decides which plan is
// best. Of equal verdicts the earlier one stays, so the order of rows matters.

// order is how one round searches for places.
type order struct {
	how placing.Strategy
	// stepwise: empty nodes, joined or on their way, are used like new ones: each step takes only as many as it needs.
	stepwise bool
	// accelerated: gangs that need accelerators come before those that do not.
	accelerated bool
	// requestsFirst: requests come before gangs.
	requestsFirst bool
	// unserved are the bundles of each request that another order leaves unserved; they come first. nil changes
	// nothing.
	unserved []int64
}

// orders are tried in addition to the first, {how: placing.Fullest}, if its result can be improved (bestRound).
var orders = [...]order{
	// Ray's order, on all nodes: a plan must not serve less than Ray's own.
	{how: placing.AsRay},
	// Gangs without accelerators, placed first, can take the CPUs beside accelerators that other gangs need.
	{how: placing.Fullest, accelerated: true},
	// Pods that an earlier plan launched because they are cheap are found again by the demand that they were launched
	// for.
	{how: placing.Cheapest, stepwise: true},
	// Gangs on the nodes with the most room leave the nodes that requests fit tightly.
	{how: placing.Roomiest, stepwise: true},
	// Pods that were launched for requests are found again only if requests go before gangs.
	{how: placing.Fullest, stepwise: true, requestsFirst: true},
}

// launchStrategy is a way to choose launches.
type launchStrategy struct {
	how placing.Strategy
	// applies reports whether the strategy can be better than the first plan.
	applies func(p *Search, first *contender) bool
	// mustServeMore: ignore a plan that does not serve more, however cheap it is.
	mustServeMore bool
}

// launchStrategies are tried in addition to the first, placing.Fullest, which fills nodes best, as Ray does (settle).
var launchStrategies = [...]launchStrategy{
	// The fullest nodes can be expensive ones.
	{how: placing.Cheapest, applies: func(*Search, *contender) bool { return true }},
	// With Ray's own plan among them, no plan for small demand is dearer than Ray's.
	{how: placing.AsRay, applies: func(p *Search, first *contender) bool { return p.small(&first.out) }},
	// If the bound on all workers is short, each pod must serve as much as it can. This strategy does not avoid
	// accelerators, which only better service justifies.
	{how: placing.Fewest, applies: func(p *Search, first *contender) bool {
		return first.unserved+float64(first.claims) > 0 && p.boundByWorkers(first.given)
	}, mustServeMore: true},
}
