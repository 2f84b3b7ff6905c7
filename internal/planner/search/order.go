package search

import (
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Other orders are tried for demand that is small: many nodes of many kinds leave room for everything in any order, and
// each node that is filled may mean another look at all of them.
const (
	maxOrderedItems   = 40
	maxOrderedClasses = 60
)

// bestRound is the best of several rounds: the one that uses what is there soonest, and those in other orders where
// they could serve more or launch less. Ray's own is among them: a plan must serve no less than Ray's. Both the search
// for launches and the judgement of them ask here, so whatever order was best, the next plan finds the same. A plan
// under the caps knows one order only, in which nothing overtakes what waits for the caps. Beside requests that are all
// served, gangs that are not matter where another order serves one.
func (p *Search) bestRound(given []int64, how placing.Strategy) Outcome {
	best := p.round(given, how)
	if p.Uncut != nil || best.perfect() || !p.orderMatters(&best) {
		return best
	}
	v := p.verdict(best.launched, &best)
	alone := len(p.Claims) == 0 && len(best.Runs) == 0 && vector.Sum(best.Unserved) == 0
	for _, o := range &orders {
		other := p.roundIn(given, o)
		other.reordered = true
		if o.requestsFirst && other.fallbacks() > best.fallbacks() {
			continue // requests have what a gang would rather have
		}
		if w := p.verdict(other.launched, &other); w.compare(&v) < 0 && (!alone || w.gangs < v.gangs) {
			if best, v = other, w; best.perfect() {
				break
			}
		}
	}
	return best
}

// orderMatters reports whether other orders can be tried and could be better. Requests alone that are all served are
// launched for by strategies, for which it is the price that counts.
func (p *Search) orderMatters(out *Outcome) bool {
	if p.itemCount() > maxOrderedItems || out.classes+len(p.Groups) > maxOrderedClasses {
		return false
	}
	return len(p.Claims)+len(p.placeable) > 0 || !out.served()
}
