package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
)

// gangsAsRay orders gangs as Ray does: those with most placement constraints first, then those with most bundles.
func gangsAsRay(gangs []*fleet.Gang) []*fleet.Gang {
	order := slices.Clone(gangs)
	slices.SortStableFunc(order, func(a, b *fleet.Gang) int {
		return cmp.Or(cmp.Compare(boundBundles(b), boundBundles(a)), cmp.Compare(len(b.Bundles), len(a.Bundles)))
	})
	return order
}

// constraints counts bundles that may not be placed without regard to the others.
func boundBundles(g *fleet.Gang) int {
	if g.Strict() {
		return len(g.Bundles)
	}
	return 0
}
