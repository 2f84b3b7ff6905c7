package observation

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// placementGrace is how long demand has to wait beside a node on which nothing changes before the sum of what is free there is held against it.
// Ray places what fits at once, and shows it within lagWindow; workers that start have their place already.
const placementGrace = 10 * time.Second

// Unplaceable remembers since when nodes have had the same cards free, and since when which demand for cards has waited. Ray
// reports the sum over a node's cards alone (docs/reference/facts.md#parts-of-cards), so that a sum is no place shows in time only. Losing it makes demand
// wait for refusalPatience once more.
type Unplaceable struct {
	free  map[raydemand.NodeID]freeCards
	asked map[string]waitingShape
}

// freeCards is what a node has had free of cards, and since when.
type freeCards struct {
	cards raydemand.Bundle
	since time.Time
}

// waitingShape is one shape that waits, and since when it has been there in every reading.
type waitingShape struct {
	raydemand.Request
	since time.Time
}

// Observe takes one complete reading in.
func (r *Unplaceable) Observe(now time.Time, nodes []raydemand.Node, demand raydemand.Demand) {
	free := make(map[raydemand.NodeID]freeCards)
	for i := range nodes {
		n := &nodes[i]
		if n.Status != raydemand.Running || !severalCards(n.Total) {
			continue
		}
		cards := cardsOf(n.Available)
		since := now
		if before, known := r.free[n.ID]; known && before.cards.Equal(cards) {
			since = before.since
		}
		free[n.ID] = freeCards{cards, since}
	}
	asked := make(map[string]waitingShape)
	ask := func(whose string, request raydemand.Request) {
		if cardsOf(request.Bundle).IsZero() {
			return
		}
		key := whose + shapeOf(request)
		since := now
		if before, known := r.asked[key]; known {
			since = before.since
		}
		asked[key] = waitingShape{request, since}
	}
	for _, request := range demand.Requests {
		ask("", request)
	}
	for _, gang := range demand.Gangs {
		for i, bundle := range gang.Bundles {
			request := raydemand.Request{Bundle: bundle, Count: 1}
			if i < len(gang.BundleSelectors) {
				request.Selectors = gang.BundleSelectors[i : i+1]
			}
			ask(gang.ID+" ", request)
		}
	}
	r.free, r.asked = free, asked
}

// Of lists the least of each card resource that has waited beside a node although as much is free there; nil where there is none.
func (r *Unplaceable) Of(n *raydemand.Node, now time.Time) raydemand.Bundle {
	steady, known := r.free[n.ID]
	if !known || now.Sub(steady.since) < placementGrace {
		return nil
	}
	var refused raydemand.Bundle
	for _, l := range r.asked {
		if now.Sub(l.since) < placementGrace || !suits(n, l.Request) {
			continue
		}
		for name, amount := range cardsOf(l.Bundle) {
			if least, has := refused[name]; has && least <= amount {
				continue
			}
			if refused == nil {
				refused = raydemand.Bundle{}
			}
			refused[name] = amount
		}
	}
	return refused
}

// suits reports whether a request could be placed on a node as far as sums and labels tell.
func suits(n *raydemand.Node, r raydemand.Request) bool {
	labels := len(r.Selectors) == 0 || slices.ContainsFunc(r.Selectors, func(s raydemand.Selector) bool { return s.Matches(n.Labels) })
	return labels && n.Available.Fits(r.Bundle)
}

// cardsOf is what of a bundle Ray gives out by the card.
func cardsOf(b raydemand.Bundle) raydemand.Bundle {
	cards := raydemand.Bundle{}
	for name, amount := range b {
		if amount > 0 && raydemand.IsUnitInstance(name) {
			cards[name] = amount
		}
	}
	return cards
}

// severalCards reports whether a node has more than one card of some resource: the sum over one says all.
func severalCards(total raydemand.Bundle) bool {
	for name, amount := range total {
		if amount > raydemand.One && raydemand.IsUnitInstance(name) {
			return true
		}
	}
	return false
}
