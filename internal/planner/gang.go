package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	key  string
}

// option is one way to have the whole gang. A strictly packed one is a single bundle.
type option struct {
	items []*item
}

// newGangs sorts the gangs so that those hardest to place come first; two gangs then never hold half of what both
// need, because each is placed whole before the next begins.
func (r *roster) newGangs(gangs []raydemand.Gang) []*gang {
	all := make([]*gang, 0, len(gangs))
	for i := range gangs {
		if len(gangs[i].Bundles) > 0 {
			all = append(all, r.newGang(&gangs[i]))
		}
	}
	slices.SortStableFunc(all, hardestFirst)
	for i := range all {
		all[i].number = i + 1
	}
	return all
}

func (r *roster) newGang(g *raydemand.Gang) *gang {
	made := &gang{Gang: g}
	made.options = append(made.options, option{r.items(gangRequests(g, g.Bundles, g.BundleSelectors))})
	for i, bundles := range g.Fallbacks {
		if len(bundles) > 0 {
			made.options = append(made.options, option{r.items(gangRequests(g, bundles, g.SelectorsOf(i)))})
		}
	}
	made.key = made.signature()
	return made
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

// signature is equal for gangs that ask for the same; the ID does not matter.
func (g *gang) signature() string {
	var s strings.Builder
	s.WriteString(string(g.Strategy) + "\x00" + g.TopologyLabel + "\x00")
	for _, o := range g.options {
		for _, it := range o.items {
			s.WriteString(it.key)
			s.WriteString(raydemand.Whole(it.request.Count).String() + "\x00")
		}
		s.WriteByte('\x01')
	}
	return s.String()
}

func hardestFirst(a, b *gang) int {
	if order := cmp.Or(
		compareBool(b.bound(), a.bound()),
		cmp.Compare(b.weight(), a.weight()),
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

// weight is the size of the preferred option.
func (g *gang) weight() (sum float64) {
	for _, it := range g.options[0].items {
		sum += it.worth * float64(it.request.Count)
	}
	return sum
}

// holders lists for each node which gangs hold a bundle there already, by the gang's number.
func (r *roster) holders(gangs []*gang) [][]int {
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

// placeGang places the whole gang or nothing: each option on a copy of the ledger, in order. It returns the ledger to
// go on with.
func (p *planning) placeGang(l *ledger, g *gang) (*ledger, bool) {
	for _, o := range g.options {
		if trial, ok := p.placeOption(l, g, o); ok {
			p.release(l)
			return trial, true
		}
	}
	return l, false
}

// placeOption places the gang wherever it may lie: in one domain after the other where it wants to share a label. The one
// whose launches are best by the objective is taken; nothing is better than no launch, so the first that needs none ends
// the search.
func (p *planning) placeOption(l *ledger, g *gang, o option) (best *ledger, ok bool) {
	for _, d := range p.roomy(l, p.domains(l, g), o) {
		b := p.newBatch("gang", o.items, l.how)
		b.turn, b.within = g.number, d
		switch {
		case g.Strategy == raydemand.StrictSpread:
			b.spread, b.avoid = true, g.number
		case g.Strategy == raydemand.StrictPack && g.held:
			b.join = g.number
		}
		trial := p.trial(l)
		p.place(trial, b)
		if b.served() && (best == nil || p.compareLaunches(o, trial.launched, best.launched) < 0) {
			best, trial = trial, best
		}
		p.release(trial)
		if best != nil && sum(best.launched) == sum(l.launched) {
			break
		}
	}
	return best, best != nil
}

func sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
