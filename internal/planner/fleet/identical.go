package fleet

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gangKind is the least that equal gangs have in common.
type gangKind struct {
	strategy        raydemand.Strategy
	topology        string
	bundles, others int
	all             raydemand.Amount
}

func gangKindOf(g *raydemand.Gang) gangKind {
	k := gangKind{strategy: g.Strategy, topology: g.TopologyLabel, bundles: len(g.Bundles), others: len(g.Fallbacks)}
	for _, b := range g.Bundles {
		for _, amount := range b {
			k.all += amount
		}
	}
	return k
}

// AsksAs reports whether two gangs are written in the same words.
func AsksAs(a, b *raydemand.Gang) bool {
	sameBundles := func(a, b []raydemand.Bundle) bool { return slices.EqualFunc(a, b, raydemand.Bundle.Equal) }
	sameConstraint := func(a, b raydemand.Constraint) bool {
		return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values)
	}
	sameSelectors := func(a, b []raydemand.Selector) bool {
		return slices.EqualFunc(a, b, func(a, b raydemand.Selector) bool { return slices.EqualFunc(a, b, sameConstraint) })
	}
	return a.Strategy == b.Strategy && a.TopologyLabel == b.TopologyLabel &&
		sameBundles(a.Bundles, b.Bundles) && sameSelectors(a.BundleSelectors, b.BundleSelectors) &&
		slices.EqualFunc(a.Fallbacks, b.Fallbacks, sameBundles) &&
		slices.EqualFunc(a.FallbackSelectors, b.FallbackSelectors, sameSelectors)
}

// copyFor makes a gang of the same words ready, with items of its own.
func (g *Gang) copyFor(of *raydemand.Gang) *Gang {
	made := &Gang{Gang: of, Key: g.Key, weight: g.weight, Options: make([]Option, len(g.Options))}
	for o := range g.Options {
		items := make([]vector.Item, len(g.Options[o].Items))
		pointers := make([]*vector.Item, len(items))
		for i, it := range g.Options[o].Items {
			items[i] = *it
			pointers[i] = &items[i]
		}
		made.Options[o].Items = pointers
	}
	return made
}

// identicalTo reports whether a gang may be placed together with equal ones. One that holds nodes is bound to those,
// and each of those that share a label looks for its own value.
func (g *Gang) identicalTo(other *Gang) bool {
	return g.Key == other.Key && !g.Held && !other.Held && g.TopologyLabel == ""
}

// CutIdentical cuts off the gangs at the front that may be placed together.
func CutIdentical(gangs []*Gang) (front, rest []*Gang) {
	n := 1
	for n < len(gangs) && gangs[0].identicalTo(gangs[n]) {
		n++
	}
	return gangs[:n], gangs[n:]
}

// CountDistinct counts what of the gangs is placed one after the other.
func CountDistinct(gangs []*Gang) (n int) {
	for ; len(gangs) > 0; n++ {
		_, gangs = CutIdentical(gangs)
	}
	return n
}
