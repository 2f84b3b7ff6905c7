package observe

import (
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// placementGrace is how long demand has to wait next to a node on which nothing changes before the node's free total
// stops counting for it. Ray places what fits at once, and shows it within lagWindow; workers that start have their
// place already.
const placementGrace = 10 * time.Second

// Unplaceable remembers since when nodes have had the same cards free, and since when which demand for cards has
// waited. Ray reports only the total over a node's cards (docs/reference/facts.md#parts-of-cards), so only time shows
// that a total does not fit on one card. If it is lost, demand waits for placementGrace once more.
type Unplaceable struct {
	free  map[raydemand.NodeID]freeCards
	asked map[string]waitingShape
}

// freeCards is what a node has free of cards, and since when.
type freeCards struct {
	cards raydemand.Bundle
	since time.Time
}

// waitingShape is one shape that waits, and since when every reading has shown it.
type waitingShape struct {
	raydemand.Request
	since time.Time
}

// Observe adds one complete reading.
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

// Of returns the smallest amount of each card resource that has waited although as much is free on the node; nil if
// there is none.
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

// suits reports whether a request could be placed on a node as far as totals and labels show.
func suits(n *raydemand.Node, r raydemand.Request) bool {
	return selects(r.Selectors, n.Labels) && n.Available.Fits(r.Bundle)
}

// cardsOf returns the resources of a bundle that Ray assigns by the card.
func cardsOf(b raydemand.Bundle) raydemand.Bundle {
	cards := raydemand.Bundle{}
	for name, amount := range b {
		if amount > 0 && raydemand.IsUnitInstance(name) {
			cards[name] = amount
		}
	}
	return cards
}

// severalCards reports whether a node has more than one card of some resource: the total of one card is exact.
func severalCards(total raydemand.Bundle) bool {
	for name, amount := range total {
		if amount > raydemand.One && raydemand.IsUnitInstance(name) {
			return true
		}
	}
	return false
}
