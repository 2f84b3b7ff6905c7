package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gang is a placement group made ready: its alternatives, in order of preference.
type gang struct {
	*raydemand.Gang
	// number is its place in the order of planning, from 1.
	number  int
	options []option
	// held are the nodes that hold a bundle of it already.
	held bool
	// key is equal for gangs that ask for the same; the ID does not matter. weight is the size of the preferred option.
	key    string
	weight float64
	// deferred: too many kinds of gangs come before it to be planned for now.
	deferred bool
	// nowhere: by none of its options has every bundle a place.
	nowhere bool
}

// option is one way to have the whole gang. A strictly packed one is a single bundle.
type option struct {
	items []*vector.Item
}

// newGangs sorts the gangs so that those hardest to place come first; two gangs then never hold half of what both
// need, because each is placed whole before the next begins.
func (r *roster) newGangs(gangs []raydemand.Gang) []*gang {
	all := make([]*gang, 0, len(gangs))
	known := map[kindOf][]*gang{}
	for i := range gangs {
		g := &gangs[i]
		if len(g.Bundles) == 0 {
			continue
		}
		kind := kindOfGang(g)
		at := slices.IndexFunc(known[kind], func(other *gang) bool { return asksAs(g, other.Gang) })
		if at >= 0 {
			all = append(all, known[kind][at].twin(g))
			continue
		}
		made := r.newGang(g)
		known[kind] = append(known[kind], made)
		all = append(all, made)
	}
	slices.SortStableFunc(all, hardestFirst)
	for i := range all {
		all[i].number = i + 1
	}
	r.putOff(all)
	return all
}

// Every kind of gang is tried on a copy of all that is free, so their number times that of kinds of nodes bounds the work of a round.
const (
	crowdWork   = 10_000_000
	leastCrowds = 200
	mostCrowds  = 2000
)

// putOff leaves for later plans what comes after the kinds of gangs that one plan places.
func (r *roster) putOff(gangs []*gang) {
	most := min(max(crowdWork/(len(r.nodes)+len(r.groups)+1), leastCrowds), mostCrowds)
	for n := 0; len(gangs) > 0; n++ {
		var front []*gang
		front, gangs = crowd(gangs)
		for _, g := range front {
			g.deferred = n >= most
		}
	}
}

func (r *roster) newGang(g *raydemand.Gang) *gang {
	made := &gang{Gang: g}
	made.options = append(made.options, r.newOption(g, g.Bundles, g.BundleSelectors))
	for i, bundles := range g.Fallbacks {
		if len(bundles) > 0 {
			made.options = append(made.options, r.newOption(g, bundles, g.SelectorsOf(i)))
		}
	}
	made.key = made.signature()
	for _, it := range made.options[0].items {
		made.weight += it.Worth * float64(it.Request.Count)
	}
	return made
}

func (r *roster) newOption(g *raydemand.Gang, bundles []raydemand.Bundle, selectors []raydemand.Selector) option {
	items := r.Items(gangRequests(g, bundles, selectors))
	if g.Strategy == raydemand.StrictPack {
		for _, it := range items {
			r.StrictlyPacked(it, bundles)
		}
	}
	return option{items}
}

// gangRequests lists the bundles; a strictly packed gang is one bundle as large as all, wherever all selectors hold.
// Ray splits it over nodes when the selectors differ.
func gangRequests(g *raydemand.Gang, bundles []raydemand.Bundle, selectors []raydemand.Selector) []raydemand.Request {
	requests := make([]raydemand.Request, len(bundles))
	for i, b := range bundles {
		requests[i] = raydemand.Request{Bundle: b, Count: 1}
		if i < len(selectors) && len(selectors[i]) > 0 {
			requests[i].Selectors = selectors[i : i+1]
		}
	}
	if g.Strategy != raydemand.StrictPack {
		return requests
	}
	whole := raydemand.Request{Bundle: raydemand.Bundle{}, Count: 1}
	var all raydemand.Selector
	for i := range requests {
		whole.Bundle.Add(requests[i].Bundle)
		for _, s := range requests[i].Selectors {
			all = append(all, s...)
		}
	}
	if len(all) > 0 {
		whole.Selectors = []raydemand.Selector{raydemand.NewSelector(all...)}
	}
	return []raydemand.Request{whole}
}

func (g *gang) signature() string {
	var s strings.Builder
	s.WriteString(string(g.Strategy) + "\x00" + g.TopologyLabel + "\x00")
	for _, o := range g.options {
		for _, it := range o.items {
			s.WriteString(it.Key)
			s.WriteString(raydemand.Whole(it.Request.Count).String() + "\x00")
		}
		s.WriteByte('\x01')
	}
	return s.String()
}

func hardestFirst(a, b *gang) int {
	if order := cmp.Or(
		vector.CompareBool(b.bound(), a.bound()),
		cmp.Compare(b.weight, a.weight),
		cmp.Compare(a.key, b.key),
		cmp.Compare(a.ID, b.ID),
	); order != 0 {
		return order
	}
	// The same bundles in another order: nothing but the report shows it.
	return cmp.Compare(fmt.Sprint(a.Bundles, a.BundleSelectors), fmt.Sprint(b.Bundles, b.BundleSelectors))
}

// bound reports whether not every placement will do.
func (g *gang) bound() bool {
	return g.strict() || g.TopologyLabel != ""
}

// strict reports whether all bundles must share a node, or none may.
func (g *gang) strict() bool {
	return g.Strategy == raydemand.StrictPack || g.Strategy == raydemand.StrictSpread
}

// accelerated reports whether some bundle of the preferred option needs an accelerator.
func (g *gang) accelerated() bool {
	return slices.ContainsFunc(g.options[0].items, func(it *vector.Item) bool { return it.Accelerator })
}

// holders lists for each node which gangs hold a bundle there already, by the gang's number.
func (r *roster) holders(gangs []*gang) [][]int {
	if !slices.ContainsFunc(r.nodes, func(n node) bool { return len(n.PlacedLabels) > 0 }) {
		return nil
	}
	byLabel := make(map[string]*gang, len(gangs))
	for _, g := range gangs {
		if g.ID != "" {
			byLabel[g.PlacedLabel()] = g
		}
	}
	placed := make([][]int, len(r.nodes))
	for i := range r.nodes {
		for label := range r.nodes[i].PlacedLabels {
			if g, waits := byLabel[label]; waits && r.nodes[i].stop == "" {
				placed[i] = append(placed[i], g.number)
				g.held = true
			}
		}
		slices.Sort(placed[i])
	}
	return placed
}

// suits reports whether a fresh node of this shape could serve a bundle of some option.
func (g *gang) suits(s *vector.Shape) bool {
	for _, o := range g.options {
		if vector.SuitsAny(o.items, s) {
			return true
		}
	}
	return false
}

// placeOption places equal gangs, all of them, by one of their options wherever they may lie: in one domain after the other where a gang
// wants to share a label. The one whose launches are best by the objective is taken; nothing is better than no launch, so the first
// that needs none ends the search.
func (p *Placer) placeOption(l *ledger, gangs []*gang, o int) (best *ledger, ok bool) {
	g := gangs[0]
	option := g.options[o]
	for _, d := range p.roomy(l, p.domains(l, g), option) {
		b := p.newBatch("gang", option.items, l.how)
		for i := range b.left {
			b.left[i] = min(b.left[i]*int64(len(gangs)), vector.MaxCount)
		}
		b.turn, b.within = g.number, d
		switch {
		case g.Strategy == raydemand.StrictSpread:
			b.apart, b.avoid = int64(len(gangs)), g.number
		case g.Strategy == raydemand.StrictPack && g.held:
			b.join = g.number
		}
		trial := p.trial(l)
		p.place(trial, b)
		trial.runs = append(trial.runs, run{gangs, o, d})
		if b.served() && (best == nil || p.compareLaunches(option, trial.launched, best.launched) < 0) {
			best, trial = trial, best
		}
		p.release(trial)
		if best != nil && vector.Sum(best.launched) == vector.Sum(l.launched) {
			break
		}
	}
	return best, best != nil
}
