package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// contender is a number of launches by group, with what a round that is given them comes to.
type contender struct {
	given []int64
	out   Outcome
	verdict
}

// settled reports whether the round that is given the launches launches no more. One that does is a proposal still: the
// next plan would launch again.
func (c *contender) settled() bool { return vector.Sum(c.out.launched) == 0 }

// before reports whether c is the better one of two.
func (c *contender) before(other *contender) bool {
	if c.settled() != other.settled() {
		return c.settled()
	}
	return c.compare(&other.verdict) < 0
}

// settle finds the launches beside those given: those of the strategy that does best, less what turns out not to be
// needed.
func (p *Search) settle(given []int64) ([]int64, Outcome) {
	first := p.bestRound(given, placing.Fullest)
	if vector.Sum(first.launched) == 0 {
		return given, first
	}
	best := p.complete(given, first, placing.Fullest)
	start := best
	for _, s := range &launchStrategies {
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
		if !r.applies(&best) {
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

// servesAllOf reports whether of no request more is left than before.
func servesAllOf(left, before []int64) bool {
	for i := range before {
		if left[i] > before[i] {
			return false
		}
	}
	return true
}

// boundByWorkers reports whether the bound on all workers keeps some group from a replica that its own limits allow.
func (p *Search) boundByWorkers(given []int64) bool {
	spare := p.Spare(given)
	for i := range p.Groups {
		if g := &p.Groups[i]; spare < g.Hosts && g.Room(given[i]) >= g.Hosts {
			return true
		}
	}
	return false
}

// complete makes launches that are enough, beginning with those of a round that was given some. Greedy placing may
// serve demand in one order on pods that are being chosen and in another on pods that are there; planning again with
// the launches given, until nothing is added, makes sure that the next cycle has nothing to add either.
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
			// Greedy launching another way could serve still more; the next plan would see it.
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

// trials is how often a clean-up may place everything once more. One more time costs as much as the last: what the
// plan itself launches stands in the ledger too, and many shapes launch many kinds of nodes.
func (p *Search) trials(last *Outcome) int {
	rounds := 1
	if p.orderMatters(last) {
		rounds += len(orders)
	}
	return min(max(maxWork/(rounds*(p.itemCount()+1)*(last.classes+len(p.Groups)+1)), minTrials), maxTrials)
}

// drop takes back every replica beyond the first ones without which all is served as well. In a cluster so large that
// the budget ends first, some may stay.
func (p *Search) drop(first, given []int64, out Outcome) ([]int64, Outcome) {
	if vector.Sum(given) == vector.Sum(first) {
		return given, out
	}
	trials := p.trials(&out)
	for dropped := true; dropped; {
		dropped = false
		for _, i := range p.dearestFirst() {
			for given[i] > first[i] && trials > 0 {
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

// dearestFirst orders groups by what a pod holds that is scarce.
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

// maxRounds bounds how often a plan is planned again with its own launches given. What the fullest strategy proposes is
// the last resort of all others, so it may go on for longer.
const (
	maxRounds        = 8
	maxFullestRounds = 64
)

// Trials and work bound the search: a budget of work and not of time, so that a plan repeats exactly.
const (
	minTrials = 8
	maxTrials = 256
	// maxWork counts looks of one item at one node class; some millions take tens of milliseconds. It bounds the clean-up
	// from minTrials on: one round of a thousand shapes over a hundred groups is more than all of it.
	maxWork = 4_000_000
)
