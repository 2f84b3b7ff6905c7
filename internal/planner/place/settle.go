package place

import (
	"cmp"
	"slices"
)

// contender is a number of launches by group, with the result of a round that is given them.
type contender struct {
	given []int64
	out   Outcome
	verdict
}

// settled reports whether the round with these launches launches nothing more. Otherwise the next plan would launch
// again, so the contender is only a proposal.
func (c *contender) settled() bool { return Sum(c.out.launched) == 0 }

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
	if !p.TriesPools() && !slices.ContainsFunc(p.Groups, func(g Group) bool { return g.Trying() }) {
		return p.settleOpen(given)
	}
	p.knownOnly = true
	given, out := p.settleOpen(given)
	p.knownOnly = false
	if out.served() && !p.belowMinimum(given) {
		return given, out
	}
	return p.settleOpen(given)
}

// belowMinimum reports whether a group that may be tried in a pool is below its minimum.
func (p *Search) belowMinimum(given []int64) bool {
	return slices.ContainsFunc(p.Groups, func(g Group) bool {
		i := g.Shape.group
		return len(p.SharedNodes.UnprovenPools(i)) > 0 && g.MinPods-g.Remaining()-given[i] > 0
	})
}

// settleOpen finds the launches of the open groups, without those that turn out to be unnecessary.
func (p *Search) settleOpen(given []int64) ([]int64, Outcome) {
	out := p.bestRound(given, fullest)
	if Sum(out.launched) == 0 {
		return given, out
	}
	best := p.complete(given, out, fullest)
	trials := p.trials(&best.out)
	// The fullest nodes can be expensive ones. For small demand, one of the orders is cheapest already.
	if !p.small(&best.out) {
		if found := p.complete(given, p.bestRound(given, cheapest), cheapest); found.before(&best) {
			best = found
		}
	}
	// If the bound on all workers is short, each pod must serve as much as it can. This strategy does not avoid
	// accelerators, which only better service justifies.
	if best.unserved+float64(best.claims) > 0 && p.boundByWorkers(best.given) {
		found := p.complete(given, p.bestRound(given, fewest), fewest)
		if found.compareService(&best.verdict) < 0 && found.before(&best) {
			best = found
		}
	}
	best = p.drop(given, best, -1, &trials)
	best = p.merge(given, best, &trials)
	return best.given, best.out
}

// merge tries one more replica of each group with which others may not be needed: gangs that were placed one after the
// other may each have got a small node where one large node holds several.
func (p *Search) merge(first []int64, best contender, trials *int) contender {
	if len(best.out.Runs) == 0 || !p.small(&best.out) {
		return best
	}
	for _, i := range p.dearestFirst() {
		for p.replaces(first, best.given, i) && *trials > 0 {
			*trials--
			found := p.drop(first, p.with(first, &best, i), i, trials)
			// Work that needs no accelerators must not launch more of them because they are cheap.
			needsNone := func(e Placement) bool { return e.Planned && e.Group == i && !e.Item.accelerator }
			if found.given == nil || !found.before(&best) || p.missing(found.given) > p.missing(best.given) ||
				p.accelerators(found.given) > p.accelerators(best.given) &&
					slices.ContainsFunc(found.out.Log, needsNone) {
				break
			}
			best = found
		}
	}
	return best
}

// replaces reports whether a replica of a group may hold what several launched ones do: it is larger than one of them.
func (p *Search) replaces(first, given []int64, i int) bool {
	size := func(of int) float64 { return p.Size(p.Groups[of].Shape.Total) * float64(p.Groups[of].Hosts) }
	for k := range given {
		if given[k] > first[k] && size(i) > size(k) {
			return true
		}
	}
	return false
}

// missing counts the pods that groups lack to reach their minimum, beside the given launches.
func (p *Search) missing(given []int64) (pods int64) {
	for i := range p.Groups {
		pods += max(0, p.Groups[i].MinPods-p.Groups[i].Remaining()-given[i])
	}
	return pods
}

// with returns the plan with a replica of a group more. If there is no room for it, it is the first of a new plan. It
// returns nothing if the group has no room in any case.
func (p *Search) with(first []int64, c *contender, i int) contender {
	hosts := p.Groups[i].Hosts
	room := func(given []int64) bool {
		l := p.open(nil, given)
		return min(l.room[i], l.spare) >= hosts
	}
	more := slices.Clone(c.given)
	if !room(more) {
		copy(more, first)
		if c.out.served() || !room(more) {
			return contender{}
		}
	}
	more[i] += hosts
	return p.complete(more, p.bestRound(more, fullest), fullest)
}

// boundByWorkers reports whether the bound on all workers prevents a replica that its group's own limits allow.
func (p *Search) boundByWorkers(given []int64) bool {
	spare := p.Spare(given)
	for i := range p.Groups {
		if g := &p.Groups[i]; spare < g.Hosts && g.room(given[i]) >= g.Hosts {
			return true
		}
	}
	return false
}

// complete adds launches until they are enough, starting with those of a round. Greedy placement may serve demand in
// one order while it chooses pods and in another order on existing pods. complete plans again with the launches given
// until nothing is added, so that the next cycle adds nothing either.
func (p *Search) complete(given []int64, out Outcome, how Strategy) contender {
	given = slices.Clone(given)
	for range maxRounds {
		if Sum(out.launched) == 0 {
			if how == fullest {
				break
			}
			// Greedy launching by another strategy could serve more, and the next plan would find it.
			how = fullest
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
	if p.small(last) {
		rounds += len(orders)
	}
	return min(max(maxWork/(rounds*(p.itemCount()+1)*(last.classes+len(p.Groups)+1)), minTrials), maxTrials)
}

// drop removes every replica beyond the first ones that is not needed to serve as much, but those of one group. In a
// very large cluster the budget ends first, and some may stay.
func (p *Search) drop(first []int64, c contender, but int, trials *int) contender {
	for dropped := c.given != nil; dropped; {
		dropped = false
		for _, i := range p.dearestFirst() {
			for i != but && c.given[i] > first[i] && *trials > 0 {
				*trials--
				less := slices.Clone(c.given)
				less[i] -= p.Groups[i].Hosts
				again := p.bestRound(less, fullest)
				if Sum(again.launched) > 0 || !again.asGood(&c.out) {
					break
				}
				c, dropped = contender{less, again, p.verdict(less, &again)}, true
			}
		}
	}
	return c
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
			cmp.Compare(p.Costs.tier[b], p.Costs.tier[a]),
			CompareBool(y.Accelerated, x.Accelerated),
			cmp.Compare(p.Costs.PerReplica[b], p.Costs.PerReplica[a]),
			cmp.Compare(p.Size(y.Total), p.Size(x.Total)),
		)
	})
	return order
}

// maxRounds limits how often a plan is planned again with its own launches given.
const maxRounds = 64

// The bounds of the search count work, not time, so that a plan repeats exactly.
const (
	minTrials = 8
	maxTrials = 256
	// maxWork counts looks of one item at one node class; some millions take tens of milliseconds. It limits the
	// clean-up beyond minTrials: one round of a thousand shapes over a hundred groups already exceeds it.
	maxWork = 4_000_000
)
