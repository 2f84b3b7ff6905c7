package search

import (
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// A plan is the best of several, because no single way of planning is best for every demand. The three lists below are
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
}

// orders are tried in addition to the first, {how: placing.Fullest}, if its result can be improved (bestRound).
var orders = [...]order{
	// Ray's order, on all nodes: a plan must not serve less than Ray's own.
	{how: placing.AsRay},
	// Gangs without accelerators, placed first, can take the CPUs beside accelerators that other gangs need.
	{how: placing.Fullest, accelerated: true},
	// Pods that an earlier plan launched step by step are found again by the demand that they were launched for.
	{how: placing.Fullest, stepwise: true},
	// The same, for pods that were launched because they are cheap.
	{how: placing.Cheapest, stepwise: true},
	// The same, for pods that were launched in Ray's order.
	{how: placing.AsRay, stepwise: true},
	// Gangs on the nodes with the most room leave the nodes that requests fit tightly.
	{how: placing.Roomiest, stepwise: true},
	// Pods that were launched for requests are found again only if requests go before gangs.
	{how: placing.Fullest, stepwise: true, requestsFirst: true},
}

// launchStrategy is a way to choose launches.
type launchStrategy struct {
	how placing.Strategy
	// applies reports whether the strategy can be better than the first plan.
	applies func(p *Search, first *contender, joinable bool) bool
	// mustServeMore: ignore a plan that does not serve more, however cheap it is.
	mustServeMore bool
}

// launchStrategies are tried in addition to the first, placing.Fullest, which fills nodes best, as Ray does (settle).
var launchStrategies = [...]launchStrategy{
	// The fullest nodes can be expensive ones.
	{how: placing.Cheapest, applies: func(*Search, *contender, bool) bool { return true }},
	// If the bound on all workers is short, each pod must serve as much as it can. This strategy does not avoid
	// accelerators, which only better service justifies.
	{how: placing.Fewest, applies: func(p *Search, first *contender, _ bool) bool {
		return first.unserved+float64(first.claims) > 0 && p.boundByWorkers(first.given)
	}, mustServeMore: true},
	// Greedy choices can leave gaps that a packing of everything together does not.
	{how: placing.Jointly, applies: func(_ *Search, _ *contender, joinable bool) bool { return joinable }},
}

// repacking packs what the best plan so far serves together with what it leaves unserved.
type repacking struct {
	// applies reports whether there is something to gain.
	applies func(best *contender) bool
	// gangs returns the unserved gangs to pack too.
	gangs func(best *contender) []*fleet.Gang
	// accepts reports whether a better plan is taken.
	accepts func(found, best *contender) bool
}

// repackings are tried last, each on the result of the one before (improve).
var repackings = [...]repacking{
	// Gangs that are placed one after the other can each get a small node where one large node would hold several. If
	// no gang is served, requests keep their order, the hardest to place first: none of them gives way to more of
	// others.
	{
		applies: func(best *contender) bool { return len(best.out.Runs) > 0 || vector.Sum(best.out.Unserved) > 0 },
		gangs:   func(*contender) []*fleet.Gang { return nil },
		accepts: func(found, best *contender) bool {
			return len(best.out.Runs) > 0 || servesAllOf(found.out.Unserved, best.out.Unserved)
		},
	},
	// A gang that found no place can find one if it is packed with the rest. If no more gangs are served, the gangs
	// that are left change nothing.
	{
		applies: func(best *contender) bool { return len(best.out.Gangs) > 0 },
		gangs:   func(best *contender) []*fleet.Gang { return best.out.Gangs },
		accepts: func(found, best *contender) bool { return found.gangs < best.gangs },
	},
}
