package place

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Gang is a placement group prepared for planning, with its options in order of preference.
type Gang struct {
	*raydemand.Gang
	// Number is the gang's position in the order of planning, from 1.
	Number int
	// Options are the items of each option. A strictly packed gang is a single bundle.
	Options [][]*Item
	// Held reports that nodes already hold some of its bundles.
	Held bool
	// Key is equal for gangs that ask for the same; the ID does not matter. weight is the size of the preferred option.
	Key    string
	weight float64
	// Deferred: there are too many kinds of gangs to plan this one now.
	Deferred bool
	// unplaceable: in each option, some bundle has no place.
	unplaceable bool
}

// newGangs sorts the gangs so that those hardest to place come first. Each gang is placed whole before the next one, so
// two gangs never hold half of what both need.
func (r *Fleet) newGangs(gangs []raydemand.Gang) []*Gang {
	all := make([]*Gang, 0, len(gangs))
	for i := range gangs {
		g := &gangs[i]
		switch last := len(all) - 1; {
		case len(g.Bundles) == 0:
		case last >= 0 && g.AsksAs(all[last].Gang):
			all = append(all, all[last].copyFor(g))
		default:
			all = append(all, r.newGang(g))
		}
	}
	slices.SortStableFunc(all, hardestFirst)
	for i, g := range all {
		g.Number = i + 1
		for option, o := range g.Options {
			for _, it := range o {
				it.Gang, it.Option = g, option
			}
		}
	}
	return all
}

func (r *Fleet) newGang(g *raydemand.Gang) *Gang {
	made := &Gang{Gang: g}
	made.Options = append(made.Options, r.newOption(g, g.Bundles, g.BundleSelectors))
	for i, bundles := range g.Fallbacks {
		if len(bundles) > 0 {
			made.Options = append(made.Options, r.newOption(g, bundles, g.SelectorsOf(i)))
		}
	}
	made.Key = made.signature()
	for _, it := range made.Options[0] {
		made.weight += it.worth * float64(it.Request.Count)
	}
	return made
}

func (r *Fleet) newOption(g *raydemand.Gang, bundles []raydemand.Bundle, selectors []raydemand.Selector) []*Item {
	items := r.Items(g.Together(bundles, selectors))
	if g.Strategy == raydemand.StrictPack {
		for _, it := range items {
			r.strictlyPacked(it, bundles)
		}
	}
	return items
}

func (g *Gang) signature() string {
	var s strings.Builder
	s.WriteString(string(g.Strategy) + "\x00" + g.TopologyLabel + "\x00")
	for _, o := range g.Options {
		for _, it := range o {
			s.WriteString(it.Key)
			s.WriteString(raydemand.Whole(it.Request.Count).String() + "\x00")
		}
		s.WriteByte('\x01')
	}
	return s.String()
}

func hardestFirst(a, b *Gang) int {
	if order := cmp.Or(
		CompareBool(b.bound(), a.bound()),
		cmp.Compare(b.weight, a.weight),
		cmp.Compare(a.Key, b.Key),
		cmp.Compare(a.ID, b.ID),
	); order != 0 {
		return order
	}
	// The same bundles in another order: only the report shows the difference.
	return cmp.Compare(fmt.Sprint(a.Bundles, a.BundleSelectors), fmt.Sprint(b.Bundles, b.BundleSelectors))
}

// bound reports whether the gang restricts where its bundles go together.
func (g *Gang) bound() bool {
	return g.strict() || g.TopologyLabel != ""
}

// strict reports whether all bundles must share a node, or no two may.
func (g *Gang) strict() bool {
	return g.Strategy == raydemand.StrictPack || g.Strategy == raydemand.StrictSpread
}

// markHolders lists, for each node, the numbers of the gangs that already hold a bundle there.
func (r *Fleet) markHolders(gangs []*Gang) [][]int {
	if !slices.ContainsFunc(r.Nodes, func(n Node) bool { return len(n.PlacedLabels) > 0 }) {
		return nil
	}
	byLabel := make(map[string]*Gang, len(gangs))
	for _, g := range gangs {
		if g.ID != "" {
			byLabel[g.PlacedLabel()] = g
		}
	}
	placed := make([][]int, len(r.Nodes))
	for i := range r.Nodes {
		for label := range r.Nodes[i].PlacedLabels {
			if g, waits := byLabel[label]; waits && r.Nodes[i].Stop == "" {
				placed[i] = append(placed[i], g.Number)
				g.Held = true
			}
		}
		slices.Sort(placed[i])
	}
	return placed
}

// suits reports whether a new node of this shape could serve a bundle of some option.
func (g *Gang) suits(s *Shape) bool {
	return slices.ContainsFunc(g.Options, func(o []*Item) bool { return SuitsAny(o, s) })
}

// Items returns the bundles of all options.
func (g *Gang) Items() []*Item { return slices.Concat(g.Options...) }

// copyFor prepares another gang that asks for the same, with items of its own.
func (g *Gang) copyFor(of *raydemand.Gang) *Gang {
	made := &Gang{Gang: of, Key: g.Key, weight: g.weight, Options: make([][]*Item, len(g.Options))}
	for o := range g.Options {
		items := make([]Item, len(g.Options[o]))
		pointers := make([]*Item, len(items))
		for i, it := range g.Options[o] {
			items[i] = *it
			pointers[i] = &items[i]
		}
		made.Options[o] = pointers
	}
	return made
}

// identicalTo reports whether a gang can be placed together with equal ones. A gang that holds nodes is bound to those
// nodes, and each gang with a topology label chooses its own value.
func (g *Gang) identicalTo(other *Gang) bool {
	return g.Key == other.Key && !g.Held && !other.Held && g.TopologyLabel == ""
}

// kindsOf splits gangs into those that can be placed together.
func kindsOf(gangs []*Gang) iter.Seq[[]*Gang] {
	return func(yield func([]*Gang) bool) {
		for rest, n := gangs, 0; len(rest) > 0; rest = rest[n:] {
			for n = 1; n < len(rest) && rest[0].identicalTo(rest[n]); {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
		}
	}
}
