package vector

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Accelerators returns the total amount of all accelerators of a node.
func (c *Catalog) Accelerators(v Vector) (all raydemand.Amount) {
	for i, amount := range c.Named(v) {
		if raydemand.IsUnitInstance(c.Names[i]) {
			all += amount
		}
	}
	return all
}

// Suits reports whether a new node of this shape could serve one bundle.
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

// Shape is what all new nodes of a group have in common, and what any node consists of.
type Shape struct {
	Group       int
	Total       Vector
	Labels      int
	Accelerated bool
}

// SliceOf returns the slice of the GPUs of nodes with this shape; nil if it is unknown or no demand requires one.
func (c *Catalog) SliceOf(s *Shape) *model.Slice { return c.slices[s.Labels] }
