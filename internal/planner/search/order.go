package search

import (
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// order is how a round looks for places.
type order struct {
	how placing.Strategy
	// stepwise: empty nodes, whether they have joined or are on their way, are used like new ones, each step taking only as
	// many as it needs. A plan that launched for one step after the other is found again that way.
	stepwise bool
	// accelerated: gangs that need accelerators go before those that do not and may take the CPUs beside them.
	accelerated bool
	// requestsFirst: requests go before gangs, and leave them what the gangs can use as well.
	requestsFirst bool
}

// orders are tried beside the first where that leaves something to be desired.
var orders = [...]order{{how: placing.AsRay}, {how: placing.Fullest, accelerated: true}, {how: placing.Fullest, stepwise: true}, {how: placing.Cheapest, stepwise: true},
	{how: placing.AsRay, stepwise: true}, {how: placing.Roomiest, stepwise: true}, {how: placing.Fullest, stepwise: true, requestsFirst: true}}

// Other orders are tried for demand that is small: many nodes of many kinds leave room for everything in any order, and each node
// that is filled may mean another look at all of them.
const (
	maxOrderedItems   = 40
	maxOrderedClasses = 60
)

// bestRound is the best of several rounds: the one that uses what is there soonest, and those in other orders where they could
// serve more or launch less. Ray's own is among them: a plan shall serve no less than Ray's. Both the search
// for launches and the judgement of them ask here, so whatever order was best, the next plan finds the same. A wave knows
// one order only, in which nothing overtakes what waits for the caps. Beside requests that are all served, gangs that are not
// matter where another order serves one.
func (p *Search) bestRound(given []int64, how placing.Strategy) Outcome {
	best := p.round(given, how)
	if p.Uncut != nil || best.perfect() || !p.orderMatters(&best) {
		return best
	}
	v := p.verdict(best.launched, &best)
	alone := len(p.Claims) == 0 && len(best.Runs) == 0 && vector.Sum(best.Unserved) == 0
	for _, o := range orders {
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

// perfect reports whether nothing is left to be desired: all is served, nothing launched for it, and no node kept from leaving.
func (o *Outcome) perfect() bool { return vector.Sum(o.launched) == 0 && o.served() && o.kept == 0 }

// fallbacks counts the gangs that go by another choice than their first.
func (o *Outcome) fallbacks() (n int) {
	for _, r := range o.Runs {
		if r.Option > 0 {
			n += len(r.Gangs)
		}
	}
	return n
}

// orderMatters reports whether other orders can be tried and could be better. Requests alone that are all served are launched
// for by strategies, for which it is the price that counts.
func (p *Search) orderMatters(out *Outcome) bool {
	if p.itemCount() > maxOrderedItems || out.classes+len(p.Groups) > maxOrderedClasses {
		return false
	}
	return len(p.Claims)+len(p.placeable) > 0 || !out.served()
}

// served reports whether nothing waits.
func (o *Outcome) served() bool {
	return vector.Sum(o.Unserved) == 0 && len(o.Gangs)+len(o.Claims) == 0
}

// itemCount counts what is placed one by one.
func (p *Search) itemCount() int {
	items := len(p.Requests)
	for _, c := range p.Claims {
		items += len(c.Items)
	}
	for gangs := p.placeable; len(gangs) > 0; {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		items += len(front[0].Options[0].Items)
	}
	return items
}
