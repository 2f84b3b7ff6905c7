package search

import (
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Other orders are tried only for small demand: many nodes of many kinds leave room for everything in any order, and
// each filled node can mean another look at all of them.
const (
	maxSmallItems   = 40
	maxSmallClasses = 60
)

// bestRound returns the best of several rounds: the one that uses existing nodes soonest, and those in other orders, if
// they could serve more or launch less. Ray's order is one of them, because a plan must not serve less than Ray. Both
// the search for launches and the comparison of plans call bestRound, so the next plan finds the same best order. A
// plan under the caps uses one order only, in which nothing overtakes demand that waits for the caps. Even if all
// requests are served, unserved gangs matter if another order serves one.
func (p *Search) bestRound(given []int64, how placing.Strategy) Outcome {
	best := p.round(given, how)
	if p.Uncut != nil || best.perfect() || !p.orderMatters(&best) {
		return best
	}
	v := p.verdict(best.launched, &best)
	alone := len(p.Claims) == 0 && len(best.Runs) == 0 && vector.Sum(best.Unserved) == 0
	tried := orders[:]
	if vector.Sum(best.Unserved) > 0 {
		// What is easier to place can have taken the only places of the rest.
		tried = append([]order{{how: how, unserved: best.Unserved}}, tried...)
	}
	for _, o := range tried {
		other := p.roundIn(given, o)
		other.reordered = true
		if o.requestsFirst && other.fallbacks() > best.fallbacks() {
			continue // requests use what an unserved gang needs
		}
		if o.unserved != nil && !other.servesAllOf(&best) {
			continue // requests keep their order: none gives way to more of others
		}
		if w := p.verdict(other.launched, &other); w.compare(&v) < 0 && (!alone || w.gangs < v.gangs) {
			if best, v = other, w; best.perfect() {
				break
			}
		}
	}
	return best
}

// orderMatters reports whether other orders can be tried and could be better. If only requests are waiting and all of
// them are served, the launch strategies decide by price.
func (p *Search) orderMatters(out *Outcome) bool {
	return p.small(out) && (len(p.Claims)+len(p.placeable) > 0 || !out.served())
}

// small reports whether the demand is small enough to be placed in several ways.
func (p *Search) small(out *Outcome) bool {
	return p.itemCount() <= maxSmallItems && out.classes+len(p.Groups) <= maxSmallClasses
}
