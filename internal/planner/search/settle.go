package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// contender is a number of launches by group, with the result of a round that is given them.
type contender struct {
	given []int64
	out   Outcome
	verdict
}

// settled reports whether the round with these launches launches nothing more. Otherwise the next plan would launch
// again, so the contender is only a proposal.
func (c *contender) settled() bool { return vector.Sum(c.out.launched) == 0 }

// before reports whether c is better than other.
func (c *contender) before(other *contender) bool {
	if c.settled() != other.settled() {
		return c.settled()
	}
	return c.compare(&other.verdict) < 0
}

// settle finds the launches in addition to those given. Groups for whose pods no node is known, and pools of which
// nothing shows that they have room, serve only what the others leave.
func (p *Search) settle(given []int64) ([]int64, Outcome) {
	if !p.TriesPools() && !slices.ContainsFunc(p.Groups, func(g fleet.Group) bool { return g.Trying() }) {
		return p.settleOpen(given)
	}
	p.KnownOnly = true
	given, out := p.settleOpen(given)
	p.KnownOnly = false
	if out.served() && !p.belowMinimum(given) {
		return given, out
	}
	return p.settleOpen(given)
}

// belowMinimum reports whether a group that may be tried in a pool is below its minimum.
func (p *Search) belowMinimum(given []int64) bool {
	return slices.ContainsFunc(p.Groups, func(g fleet.Group) bool {
		i := g.Shape.Group
		return len(p.Ceilings.UnprovenPools(i)) > 0 && g.MinPods-g.Remaining()-given[i] > 0
	})
}

// settleOpen finds the launches of the open groups: those of the best strategy, without those that turn out to be
// unnecessary.
func (p *Search) settleOpen(given []int64) ([]int64, Outcome) {
	first := p.bestRound(given, placing.Fullest)
	if vector.Sum(first.launched) == 0 {
		return given, first
	}
	best := p.complete(given, first, placing.Fullest)
	start := best
	for _, s := range &launchStrategies {
		if p.tired() {
			break
		}
		if !s.applies(p, &start, first.joinable) {
			continue
		}
		found := p.complete(given, p.bestRound(given, s.how), s.how)
		if s.mustServeMore && found.compareService(&best.verdict) >= 0 {
			continue
		}
		if found.before(&best) {
			best = found
		}
	}
	best = p.improve(given, best)
	return p.drop(given, best.given, best.out)
}

// improve tries the repackings of the best plan so far.
func (p *Search) improve(given []int64, best contender) contender {
	for _, r := range &repackings {
		if p.tired() || !r.applies(&best) {
			continue
		}
		proposal, ok := p.together(given, &best, r.gangs(&best))
		if !ok {
			continue
		}
		found := p.complete(proposal, p.bestRound(proposal, placing.Fullest), placing.Fullest)
		if found.before(&best) && r.accepts(&found, &best) {
			best = found
		}
	}
	return best
}

// servesAllOf reports whether no request has more unserved bundles than before.
func servesAllOf(left, before []int64) bool {
	for i := range before {
		if left[i] > before[i] {
			return false
		}
	}
	return true
}

// boundByWorkers reports whether the bound on all workers prevents a replica that its group's own limits allow.
func (p *Search) boundByWorkers(given []int64) bool {
	spare := p.Spare(given)
	for i := range p.Groups {
		if g := &p.Groups[i]; spare < g.Hosts && g.Room(given[i]) >= g.Hosts {
			return true
		}
	}
	return false
}

// complete adds launches until they are enough, starting with those of a round. Greedy placement may serve demand in
// one order while it chooses pods and in another order on existing pods. complete plans again with the launches given
// until nothing is added, so that the next cycle adds nothing either.
func (p *Search) complete(given []int64, out Outcome, how placing.Strategy) contender {
	given = slices.Clone(given)
	rounds := maxRounds
	if how == placing.Fullest {
		rounds = maxFullestRounds
	}
	for ; rounds > 0; rounds-- {
		if vector.Sum(out.launched) == 0 {
			if how == placing.Fullest || !out.reordered && len(out.Gangs)+len(out.Claims) == 0 {
				break
			}
			// Greedy launching by another strategy could serve more, and the next plan would find it.
			how = placing.Fullest
			out = p.bestRound(given, how)
			continue
		}
		for i, n := range out.launched {
			given[i] += n
		}
		out = p.bestRound(given, how)
	}
	return contender{given, out, p.verdict(given, &out)}
}

// trials returns how often a clean-up may place everything once more. Each time costs as much as the last one: the
// plan's own launches are on the ledger too, and many shapes launch many kinds of nodes.
func (p *Search) trials(last *Outcome) int {
	rounds := 1
	if p.orderMatters(last) {
		rounds += len(orders)
	}
	return min(max(maxWork/(rounds*(p.itemCount()+1)*(last.classes+len(p.Groups)+1)), minTrials), maxTrials)
}

// drop removes every replica beyond the first ones that is not needed to serve as much. In a very large cluster the
// budget ends first, and some may stay.
func (p *Search) drop(first, given []int64, out Outcome) ([]int64, Outcome) {
	if vector.Sum(given) == vector.Sum(first) {
		return given, out
	}
	trials := p.trials(&out)
	for dropped := true; dropped; {
		dropped = false
		for _, i := range p.dearestFirst() {
			for given[i] > first[i] && trials > 0 && !p.tired() {
				trials--
				less := slices.Clone(given)
				less[i] -= p.Groups[i].Hosts
				again := p.bestRound(less, placing.Fullest)
				if vector.Sum(again.launched) > 0 || !again.asGood(&out) {
					break
				}
				given, out, dropped = less, again, true
			}
		}
	}
	return given, out
}

// dearestFirst orders groups by the scarce resources of a pod, the most expensive first.
func (p *Search) dearestFirst() []int {
	order := make([]int, len(p.Groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := p.Groups[a].Shape, p.Groups[b].Shape
		return cmp.Or(
			cmp.Compare(p.Costs.Tier[b], p.Costs.Tier[a]),
			vector.CompareBool(y.Accelerated, x.Accelerated),
			cmp.Compare(p.Costs.PerReplica[b], p.Costs.PerReplica[a]),
			cmp.Compare(p.Size(y.Total), p.Size(x.Total)),
		)
	})
	return order
}

// maxRounds limits how often a plan is planned again with its own launches given. The fullest strategy is the last
// resort of all others, so it may go on for longer.
const (
	maxRounds        = 8
	maxFullestRounds = 64
)

// The bounds of the search count work, not time, so that a plan repeats exactly.
const (
	minTrials = 8
	maxTrials = 256
	// maxWork counts looks of one item at one node class; some millions take tens of milliseconds. It limits the
	// clean-up beyond minTrials: one round of a thousand shapes over a hundred groups already exceeds it.
	maxWork = 4_000_000
)
