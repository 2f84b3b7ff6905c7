package main

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// withoutCards lets both planners add up what Ray assigns by card, under names that are not accelerators.
func withoutCards(v *view) bool {
	changed := false
	for _, s := range []*planner.Snapshot{&v.ray, &v.us} {
		if !asksForParts(*s) {
			continue
		}
		changed = true
		s.Requests, s.Constraint = addedUp(s.Requests), addedUp(s.Constraint)
		edit(&s.Groups, func(g *planner.Group) bool {
			g.Resources = plainNames(g.Resources)
			return true
		})
		edit(&s.Gangs, func(g *raydemand.Gang) bool {
			g.Bundles, g.Fallbacks = allPlain(g.Bundles), slices.Clone(g.Fallbacks)
			for i := range g.Fallbacks {
				g.Fallbacks[i] = allPlain(g.Fallbacks[i])
			}
			return true
		})
		editNodes(s, func(n *planner.Node) (bool, bool) {
			n.Resources, n.Total, n.Available = plainNames(n.Resources), plainNames(n.Total), plainNames(n.Available)
			return true, true
		})
		if s.Head != nil {
			head := *s.Head
			head.Resources, head.Total, head.Available = plainNames(
				head.Resources,
			), plainNames(
				head.Total,
			), plainNames(
				head.Available,
			)
			s.Head = &head
		}
	}
	return changed
}

// asksForParts reports whether some demand asks for a fraction of a card.
func asksForParts(s planner.Snapshot) bool {
	parts := func(b raydemand.Bundle) bool {
		return slices.ContainsFunc(
			raydemand.UnitInstances(),
			func(name string) bool { return b[name]%raydemand.One != 0 },
		)
	}
	ofRequest := func(r raydemand.Request) bool { return parts(r.Bundle) }
	return slices.ContainsFunc(s.Requests, ofRequest) || slices.ContainsFunc(s.Constraint, ofRequest) ||
		slices.ContainsFunc(s.Gangs, func(g raydemand.Gang) bool {
			return slices.ContainsFunc(
				append([][]raydemand.Bundle{g.Bundles}, g.Fallbacks...),
				func(b []raydemand.Bundle) bool { return slices.ContainsFunc(b, parts) },
			)
		})
}

// plainNames returns a copy without resources that are assigned by card; nil stays nil.
func plainNames(b raydemand.Bundle) raydemand.Bundle {
	b = b.Clone()
	for _, name := range raydemand.UnitInstances() {
		if amount, has := b[name]; has {
			delete(b, name)
			b["added-up-"+name] = amount
		}
	}
	return b
}

func allPlain(bundles []raydemand.Bundle) []raydemand.Bundle {
	all := make([]raydemand.Bundle, len(bundles))
	for i, b := range bundles {
		all[i] = plainNames(b)
	}
	return all
}

func addedUp(requests []raydemand.Request) []raydemand.Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Bundle = plainNames(requests[i].Bundle)
	}
	return requests
}
