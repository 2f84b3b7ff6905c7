package place

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// gangKind is what equal gangs have in common.
type gangKind struct {
	strategy        raydemand.Strategy
	topology        string
	bundles, others int
	all             raydemand.Amount
	what            uint64 // a hash of the resources of each bundle, whatever their order
}

func gangKindOf(g *raydemand.Gang) gangKind {
	k := gangKind{strategy: g.Strategy, topology: g.TopologyLabel, bundles: len(g.Bundles), others: len(g.Fallbacks)}
	for i, b := range g.Bundles {
		for name, amount := range b {
			k.all += amount
			k.what += hashOf(name, uint64(amount)+uint64(i)<<48)
		}
	}
	return k
}

// hashOf is FNV-1a of a name and a number. The last step is that of MurmurHash3: sums of hashes that differ in few bits
// must not be equal.
func hashOf(name string, number uint64) uint64 {
	const basis, prime = 14695981039346656037, 1099511628211
	h := uint64(basis)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	h = (h ^ number) * prime
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// AsksAs reports whether two gangs ask for the same in the same order.
func AsksAs(a, b *raydemand.Gang) bool {
	sameBundles := func(a, b []raydemand.Bundle) bool { return slices.EqualFunc(a, b, raydemand.Bundle.Equal) }
	sameConstraint := func(a, b raydemand.Constraint) bool {
		return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values)
	}
	sameSelectors := func(a, b []raydemand.Selector) bool {
		return slices.EqualFunc(
			a,
			b,
			func(a, b raydemand.Selector) bool { return slices.EqualFunc(a, b, sameConstraint) },
		)
	}
	return a.Strategy == b.Strategy && a.TopologyLabel == b.TopologyLabel &&
		sameBundles(a.Bundles, b.Bundles) && sameSelectors(a.BundleSelectors, b.BundleSelectors) &&
		slices.EqualFunc(a.Fallbacks, b.Fallbacks, sameBundles) &&
		slices.EqualFunc(a.FallbackSelectors, b.FallbackSelectors, sameSelectors)
}

// copyFor prepares another gang that asks for the same, with items of its own.
func (g *Gang) copyFor(of *raydemand.Gang) *Gang {
	made := &Gang{Gang: of, Key: g.Key, weight: g.weight, Options: make([]Option, len(g.Options))}
	for o := range g.Options {
		items := make([]Item, len(g.Options[o].Items))
		pointers := make([]*Item, len(items))
		for i, it := range g.Options[o].Items {
			items[i] = *it
			pointers[i] = &items[i]
		}
		made.Options[o].Items = pointers
	}
	return made
}

// identicalTo reports whether a gang can be placed together with equal ones. A gang that holds nodes is bound to those
// nodes, and each gang with a topology label chooses its own value.
func (g *Gang) identicalTo(other *Gang) bool {
	return g.Key == other.Key && !g.Held && !other.Held && g.TopologyLabel == ""
}

// cutIdentical splits off the gangs at the front that can be placed together.
func cutIdentical(gangs []*Gang) (front, rest []*Gang) {
	n := 1
	for n < len(gangs) && gangs[0].identicalTo(gangs[n]) {
		n++
	}
	return gangs[:n], gangs[n:]
}

// countDistinct counts the groups of gangs that are placed one after the other.
func countDistinct(gangs []*Gang) (n int) {
	for ; len(gangs) > 0; n++ {
		_, gangs = cutIdentical(gangs)
	}
	return n
}
