package vector

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Accelerators is how much of all accelerators together a node has.
func (c *Catalog) Accelerators(v Vector) (all raydemand.Amount) {
	for i, amount := range c.Named(v) {
		if raydemand.IsUnitInstance(c.Names[i]) {
			all += amount
		}
	}
	return all
}

// Suits reports whether a fresh node of this shape could serve one bundle.
func (it *Item) Suits(s *Shape) bool {
	return it.Rank[s.Labels] != NoMatch && s.Total.Times(it.Need, 1) == 1
}

func SuitsAny(items []*Item, s *Shape) bool {
	for _, it := range items {
		if it.Suits(s) {
			return true
		}
	}
	return false
}

// Shape is what all fresh nodes of a group have in common, and what any node is made of.
type Shape struct {
	Group       int
	Total       Vector
	Labels      int
	Accelerated bool
}

// SliceOf is the slice behind the GPUs of nodes of this shape, nil where it is not known or nothing asks.
func (c *Catalog) SliceOf(s *Shape) *model.Slice { return c.slices[s.Labels] }
