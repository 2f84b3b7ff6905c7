package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placeOption places equal gangs by one option, all of them or none, wherever they may go: in one domain after the
// other if a gang has a topology label. It takes the placement with the best launches. The first one that needs no
// launch ends the search, because nothing is better.
func (p *Search) placeOption(l *Ledger, gangs []*Gang, o int) (best *Ledger, ok bool) {
	g := gangs[0]
	option := g.Options[o]
	domains := p.domains(l, g)
	if len(domains) > 1 {
		domains = p.roomy(l, domains, option)
	}
	for _, d := range domains {
		b := p.newBatch("gang", option, l.how)
		for i := range b.left {
			b.left[i] = min(b.left[i]*int64(len(gangs)), MaxCount)
		}
		b.turn, b.within = g.Number, d
		switch {
		case g.Strategy == raydemand.StrictSpread:
			b.apart, b.avoid = int64(len(gangs)), g.Number
		case g.Strategy == raydemand.StrictPack && g.Held:
			b.join = g.Number
		}
		trial := p.trial(l)
		p.place(trial, b)
		trial.runs = append(trial.runs, Run{gangs, o, d})
		if b.served() && (best == nil || p.compareLaunches(option, trial.launched, best.launched) < 0) {
			best, trial = trial, best
		}
		p.release(trial)
		if best != nil && Sum(best.launched) == Sum(l.launched) {
			break
		}
	}
	return best, best != nil
}

// Equal gangs are placed together, so the work depends on the number of kinds of gangs, not on the number of gangs.
// Nothing is lost by this: what n gangs ask for together can be divided among them afterwards. If bundles may share
// nodes, any division works. A strictly packed gang is a single bundle. And n strictly spread gangs, of which no node
// holds more than n bundles, can be divided so that no gang has two bundles on a node (the edges of a bipartite graph
// of degree n have n colors).

// placeIdentical places as many of some equal gangs as it can, each as a whole: by the first option, the rest by the
// next ones. It returns the ledger to continue with, and how many gangs at the front are served.
func (p *Search) placeIdentical(l *Ledger, gangs []*Gang) (*Ledger, int) {
	served := 0
	for o := range gangs[0].Options {
		rest := gangs[served:]
		if len(rest) == 0 {
			break
		}
		trial, n := p.placeMost(l, rest, o)
		if n > 0 {
			p.release(l)
			l, served = trial, served+int(n)
		}
	}
	return l, served
}

// placeMost finds how many of the gangs an option serves.
func (p *Search) placeMost(l *Ledger, gangs []*Gang, o int) (best *Ledger, served int64) {
	if best, ok := p.placeOption(l, gangs, o); ok {
		return best, int64(len(gangs))
	}
	served = mostThat(int64(len(gangs)-1), func(n int64) bool {
		trial, ok := p.placeOption(l, gangs[:n], o)
		if ok {
			p.release(best)
			best = trial
		}
		return ok
	})
	return best, served
}

// mostThat returns the largest number up to limit that fits, if all smaller ones fit too. Most often it is small.
func mostThat(limit int64, fits func(n int64) bool) (least int64) {
	for high := limit + 1; high-least > 1; {
		if n := min((least+high)/2, 2*least+1); fits(n) {
			least = n
		} else {
			high = n
		}
	}
	return least
}

// domains lists where a gang can be placed, by the values of its topology label: only those that hold some of it, if
// any do.
func (p *Search) domains(l *Ledger, g *Gang) []Domain {
	if g.TopologyLabel == "" {
		return []Domain{{}}
	}
	t := p.Topology(g.TopologyLabel)
	holds := make([]bool, t.values)
	for i := range l.classes {
		class := &l.classes[i]
		if value := t.Of[class.Shape.Labels]; value >= 0 && g.Held && slices.Contains(class.placed, g.Number) {
			holds[value] = true
		}
	}
	return t.Domains(func(value int) bool { return !g.Held || holds[value] })
}

// maxDomains is how many domains are tried for one gang. A label can have one value per node. Domains without enough
// room in total are not tried, so the bound matters only if many have room and the gang still does not fit.
const maxDomains = 64

// roomy removes the domains that have less in total than the option asks for, including possible launches.
func (p *Search) roomy(l *Ledger, all []Domain, o []*Item) []Domain {
	if len(all) == 0 {
		return nil
	}
	need := make(Vector, len(p.Names))
	for _, it := range o {
		for _, t := range it.Need {
			all := t.Amount.Times(it.Request.Count)
			need[t.Resource] += min(all, raydemand.MaxAmount-need[t.Resource])
		}
	}
	t := all[0].Topology
	if t == nil {
		t = &Topology{Of: make([]int, len(p.Sets)), values: 1}
	}
	lacks := make([]Vector, t.values) // nil for those that lack nothing
	short := 0
	if slices.ContainsFunc(need, func(a raydemand.Amount) bool { return a > 0 }) {
		for _, d := range all {
			lacks[d.Value] = slices.Clone(need)
		}
		short = len(all)
	}
	add := func(s *Shape, free Vector, count int64) {
		value := t.Of[s.Labels]
		if value < 0 || count <= 0 || lacks[value] == nil {
			return
		}
		enough := true
		for r, lack := range lacks[value] {
			if lack > 0 {
				lacks[value][r] -= min(free[r].Times(count), lack)
				enough = enough && lacks[value][r] <= 0
			}
		}
		if enough {
			lacks[value] = nil
			short--
		}
	}
	for i := 0; i < len(l.classes) && short > 0; i++ {
		add(l.classes[i].Shape, l.classes[i].free, l.classes[i].count)
	}
	for i := 0; i < len(p.Groups) && short > 0; i++ {
		add(p.Groups[i].Shape, p.Groups[i].Shape.Total, min(l.room[i], l.spare))
	}
	roomy := slices.DeleteFunc(all, func(d Domain) bool { return lacks[d.Value] != nil })
	return roomy[:min(len(roomy), maxDomains)]
}

// compareLaunches orders the launches of two domains for one option: without accelerators if the option needs none,
// then those that have room now before those for which a pool must add nodes, then by cost.
func (p *Search) compareLaunches(o []*Item, a, b []int64) (order int) {
	if !slices.ContainsFunc(o, func(it *Item) bool { return it.accelerator }) {
		order = cmp.Compare(p.accelerators(a), p.accelerators(b))
	}
	x, y := p.Costs.launchCost(a), p.Costs.launchCost(b)
	return cmp.Or(order, CompareBool(p.hasRoomNow(b), p.hasRoomNow(a)), x.compare(&y))
}

// hasRoomNow reports whether nodes that exist have room for launches.
func (p *Search) hasRoomNow(launched []int64) bool {
	nodes := p.present.SharedNodes
	for i, n := range launched {
		if n > 0 && !nodes.Limits(i) {
			return false
		}
	}
	return nodes.Occupied(launched) != nil
}

// accelerators adds up those of launches.
func (p *Search) accelerators(launched []int64) (all raydemand.Amount) {
	for i, n := range launched {
		for k, amount := range p.Named(p.Groups[i].Shape.Total) {
			if raydemand.IsUnitInstance(p.Names[k]) {
				all += amount.Times(n)
			}
		}
	}
	return all
}

// Topology groups label sets by their value of one label (docs/reference/facts.md#topology-of-a-placement-group).
// Values are numbered in alphabetical order.
type Topology struct {
	// Of is the number of each label set's value, or negative if the set lacks the label.
	Of     []int
	values int
}

// Domain is where a gang can be placed: nodes and groups with one value of a topology. The zero Domain is everywhere.
type Domain struct {
	*Topology
	Value int
}

func (d Domain) Admits(labels int) bool { return d.Topology == nil || d.Of[labels] == d.Value }

// numberTopologies numbers the values of each topology label of the gangs, and finds the nodes that exist.
func (r *Fleet) numberTopologies(s *model.Snapshot) {
	r.topologies = map[string]*Topology{}
	for i := range s.Gangs {
		if label := s.Gangs[i].TopologyLabel; label != "" && r.topologies[label] == nil {
			r.topologies[label] = r.newTopology(label)
		}
	}
	if len(r.topologies) > 0 {
		isNew := func(place landing.Place) bool { return place.New }
		r.present = landing.Share(slices.DeleteFunc(slices.Clone(s.Places), isNew), s.Promised, nil, r.tenants())
	}
}

// Topology returns the numbered values of a topology label.
func (r *Fleet) Topology(label string) *Topology { return r.topologies[label] }

func (r *Fleet) newTopology(label string) *Topology {
	var values []string
	for _, labels := range r.Sets {
		if value, ok := labels[label]; ok && !landing.IsOpen(value) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	made := &Topology{Of: make([]int, len(r.Sets)), values: len(values)}
	for set, labels := range r.Sets {
		made.Of[set] = -1
		if value, ok := labels[label]; ok && !landing.IsOpen(value) {
			made.Of[set], _ = slices.BinarySearch(values, value)
		}
	}
	return made
}

func (t *Topology) Domains(wanted func(value int) bool) (all []Domain) {
	for value := range t.values {
		if wanted(value) {
			all = append(all, Domain{t, value})
		}
	}
	return all
}

// hasPlaces reports whether an option of a gang could be placed if nothing else were, as far as single bundles and
// totals show: each bundle has a place, and all together fit in the total. Possible launches count.
func (p *Search) hasPlaces(l *Ledger, g *Gang) bool {
	lacks := func(it *Item) bool { return !p.hasPlace(l, it) }
	return slices.ContainsFunc(g.Options, func(o []*Item) bool {
		return !slices.ContainsFunc(o, lacks) && len(p.roomy(l, []Domain{{}}, o)) > 0
	})
}

// hasPlace reports whether one bundle fits on existing nodes, or on pods that some group may still launch.
func (p *Search) hasPlace(l *Ledger, it *Item) bool {
	for i := range p.Groups {
		if g := &p.Groups[i]; min(l.room[i], l.spare) >= g.Hosts && it.Suits(g.Shape) {
			return true
		}
	}
	for i := range l.classes { // a class is large to copy, and a gang has many bundles
		if class := &l.classes[i]; it.Rank[class.Shape.Labels] != NoMatch && class.free.Times(it.Need, 1) == 1 {
			return true
		}
	}
	return false
}

// A gang with a bundle that has no place at all, regardless of other demand, is not planned for. It is reported as
// unserved, and launches for other demand do not depend on it.

// gangsWithPlaces lists the gangs that could be placed if nothing else were.
func (p *Search) gangsWithPlaces() (all []*Gang) {
	if len(p.Gangs) == 0 {
		return nil
	}
	l := p.open(p.Base, make([]int64, len(p.Groups)))
	p.untouched = l
	for front := range kindsOf(p.Gangs) {
		if p.hasPlaces(l, front[0]) {
			all = append(all, front...)
			continue
		}
		for _, g := range front {
			g.unplaceable = true
		}
	}
	return all
}

// TooSmall reports whether a domain has less in total than an option asks for, even if nothing else is placed.
func (p *Search) TooSmall(o []*Item, within Domain) bool {
	return len(p.roomy(p.untouched, []Domain{within}, o)) == 0
}

// OpenDomains lists where a gang may be placed, before anything is placed.
func (p *Search) OpenDomains(g *Gang) []Domain { return p.domains(p.untouched, g) }
