package place

import (
	"cmp"
)

// A plan is the best of several, because no single way of planning is best for every demand. The list below has all
// orders that are tried, with the reason for each row. The verdict decides which plan is best. Of equal verdicts the
// earlier one stays, so the order of rows matters.

// order is how one round searches for places.
type order struct {
	how Strategy
	// stepwise: empty nodes, joined or on their way, are used like new ones: each step takes only as many as it needs.
	stepwise bool
	// requestsFirst: requests come before gangs.
	requestsFirst bool
	// unserved are the bundles of each request that another order leaves unserved; they come first. nil changes
	// nothing.
	unserved []int64
	// gangs come before the others: another order leaves them unserved.
	gangs []*Gang
}

// orders are tried in addition to the first, {how: fullest}, if its result can be improved (bestRound).
var orders = [...]order{
	// Ray's order, on all nodes: a plan must not serve less than Ray's own, and not be dearer.
	{how: asRay},
	// Pods that an earlier plan launched because they are cheap are found again by the demand that they were launched
	// for.
	{how: cheapest, stepwise: true},
	// Gangs on the nodes with the most room leave the nodes that requests fit tightly.
	{how: roomiest, stepwise: true},
	// Pods that were launched for requests are found again only if requests go before gangs.
	{how: fullest, stepwise: true, requestsFirst: true},
}

// Other orders are tried only for small demand: many nodes of many kinds leave room for everything in any order, and
// each filled node can mean another look at all of them.
const (
	maxSmallClasses = 60
	maxSmallItems   = 40
)

// bestRound returns the best of several rounds: the one that uses existing nodes soonest, and those in other orders, if
// they could serve more or launch less. Ray's order is one of them, because a plan must not serve less than Ray. Both
// the search for launches and the comparison of plans call bestRound, so the next plan finds the same best order. Even
// if all requests are served, unserved gangs matter if another order serves one.
func (p *Search) bestRound(given []int64, how Strategy) Outcome {
	best := p.round(given, order{how: how})
	if best.perfect() || !p.small(&best) {
		return best
	}
	v := p.verdict(best.launched, &best)
	tried := orders[:]
	if Sum(best.Unserved)+int64(len(best.Gangs)) > 0 {
		// What is easier to place can have taken the only places of the rest.
		tried = append([]order{{how: how, stepwise: true, unserved: best.Unserved, gangs: best.Gangs}}, tried...)
	}
	for _, o := range tried {
		other := p.round(given, o)
		if o.requestsFirst && other.fallbacks() > best.fallbacks() {
			continue // requests use what an unserved gang needs
		}
		if o.unserved != nil && !other.servesAllOf(&best) {
			continue // requests keep their order: none gives way to more of others
		}
		if w := p.verdict(other.launched, &other); w.compare(&v) < 0 {
			if best, v = other, w; best.perfect() {
				break
			}
		}
	}
	return best
}

// small reports whether the demand is small enough to be placed in several ways.
func (p *Search) small(out *Outcome) bool {
	return p.itemCount() <= maxSmallItems && out.classes+len(p.Groups) <= maxSmallClasses
}

// verdict rates a plan: what it leaves unserved, then what it costs by tier, then the number of its pods, then the
// number of idle nodes that it keeps from stopping. Smaller is better, compared in this order.
type verdict struct {
	claims, gangs int
	unserved      float64
	launchCost
	// kept counts the nodes that stay beyond their idle timeout because something is placed on them.
	kept int
}

func (p *Search) verdict(given []int64, out *Outcome) verdict {
	v := verdict{claims: len(out.Claims), gangs: len(out.Gangs), kept: out.kept, launchCost: p.Costs.launchCost(given)}
	for i, n := range out.Unserved {
		v.unserved += float64(n) * p.Needed(p.Requests[i])
	}
	return v
}

// compareService compares what is left unserved.
func (v *verdict) compareService(other *verdict) int {
	return cmp.Or(
		cmp.Compare(v.claims, other.claims),
		cmp.Compare(v.gangs, other.gangs),
		CompareNearly(v.unserved, other.unserved),
	)
}

func (v *verdict) compare(other *verdict) int {
	return cmp.Or(v.compareService(other), v.launchCost.compare(&other.launchCost), cmp.Compare(v.kept, other.kept))
}
