package place

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// If some demand asks for a fraction of a resource that Ray assigns by the card (raydemand.Cards), a vector has slots
// after its named amounts for what is free on the partly used cards.

// maxPartial is how many partly used cards of one node are distinguished.
const maxPartial = 16

// cards is a resource of which some demand asks for a fraction.
type cards struct {
	resource int
	// first and slots locate the partly used cards in a vector.
	first, slots int
	// sizes are the fractions in the demand, largest first.
	sizes []raydemand.Amount
}

// pieces is how one bundle asks for cards.
type pieces struct {
	*cards
	raydemand.Pieces
}

// on returns the cards of a vector.
func (v Vector) on(k *cards) raydemand.Cards {
	return raydemand.Cards{Free: &v[k.resource], Partly: v[k.first : k.first+k.slots]}
}

// newCards finds the resources that must be counted by card.
func (c *Catalog) newCards(s *model.Snapshot) {
	sizes := map[string]map[raydemand.Amount]bool{}
	s.EachBundle(func(b raydemand.Bundle) {
		for name, amount := range b {
			if part := amount % raydemand.One; part > 0 && raydemand.IsUnitInstance(name) {
				if sizes[name] == nil {
					sizes[name] = map[raydemand.Amount]bool{}
				}
				sizes[name][part] = true
			}
		}
	})
	refused := func(n *model.Node) {
		for name := range n.Refused {
			if _, known := c.Index[name]; known && sizes[name] == nil && raydemand.IsUnitInstance(name) {
				sizes[name] = map[raydemand.Amount]bool{}
			}
		}
	}
	for i := range s.Nodes {
		refused(&s.Nodes[i])
	}
	if s.Head != nil {
		refused(s.Head)
	}
	c.cardsOf = make([]*cards, len(c.Names))
	width := len(c.Names)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		made := &cards{resource: c.Index[name], first: width, slots: mostCards(s, name)}
		made.sizes = slices.SortedFunc(maps.Keys(sizes[name]), func(a, b raydemand.Amount) int { return int(b - a) })
		c.cards, c.cardsOf[made.resource] = append(c.cards, made), made
		width += made.slots
	}
	c.width = width
}

// mostCards returns the largest number of cards of a resource on one node, from 1 to maxPartial.
func mostCards(s *model.Snapshot, name string) int {
	most := raydemand.One
	for i := range s.Groups {
		most = max(most, s.Groups[i].Resources.Has(name))
	}
	for i := range s.Nodes {
		most = max(most, s.Nodes[i].Total.Has(name), s.Nodes[i].Resources.Has(name))
	}
	if s.Head != nil {
		most = max(most, s.Head.Total.Has(name), s.Head.Resources.Has(name))
	}
	most = min(most, maxPartial*raydemand.One)
	return int((most + raydemand.One - 1) / raydemand.One)
}

// Named returns the amounts by resource, without those of single cards.
func (c *Catalog) Named(v Vector) Vector { return v[:len(c.Names)] }

// assumeLayout assumes how a node's free amount is spread over its cards.
func (c *Catalog) assumeLayout(free, total Vector, refused raydemand.Bundle) {
	for _, k := range c.cards {
		free.on(k).Assume(total[k.resource], k.sizes, refused.Has(c.Names[k.resource]))
	}
}

// strictlyPacked gives an item that stands for several bundles on one node the pieces of each bundle.
func (c *Catalog) strictlyPacked(it *Item, bundles []raydemand.Bundle) {
	for i := range it.Need {
		t := &it.Need[i]
		if t.Pieces == nil {
			continue
		}
		t.Pieces = &pieces{cards: t.Pieces.cards}
		for _, b := range bundles {
			t.Pieces.Add(raydemand.PiecesOf(max(b.Has(c.Names[t.Resource]), 0)))
		}
		it.Key += "\x00cards" // distinguishes pieces with the same sum
		for _, part := range t.Pieces.Parts {
			it.Key += " " + part.String()
		}
	}
}
