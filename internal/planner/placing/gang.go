package placing

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placeOption places equal gangs, all of them, by one of their options wherever they may lie: in one domain after the
// other where a gang wants to share a label. The one whose launches are best by the objective is taken; nothing is
// better than no launch, so the first that needs none ends the search.
func (p *Placer) placeOption(l *Ledger, gangs []*fleet.Gang, o int) (best *Ledger, ok bool) {
	g := gangs[0]
	option := g.Options[o]
	for _, d := range p.Roomy(l, p.Domains(l, g), option) {
		b := p.NewBatch("gang", option.Items, l.How)
		for i := range b.Left {
			b.Left[i] = min(b.Left[i]*int64(len(gangs)), vector.MaxCount)
		}
		b.turn, b.within = g.Number, d
		switch {
		case g.Strategy == raydemand.StrictSpread:
			b.apart, b.avoid = int64(len(gangs)), g.Number
		case g.Strategy == raydemand.StrictPack && g.Held:
			b.join = g.Number
		}
		trial := p.Trial(l)
		p.Place(trial, b)
		trial.Runs = append(trial.Runs, Run{gangs, o, d})
		if b.Served() && (best == nil || p.compareLaunches(option, trial.Launched, best.Launched) < 0) {
			best, trial = trial, best
		}
		p.Release(trial)
		if best != nil && vector.Sum(best.Launched) == vector.Sum(l.Launched) {
			break
		}
	}
	return best, best != nil
}

// Equal gangs are placed together, so that the work depends on how many kinds of gangs there are and not on how many
// gangs. Nothing is lost by it: what n gangs ask for together can be dealt out to them afterwards. Where bundles may
// share nodes any way of dealing will do; a strictly packed gang is a single bundle; and n strictly spread gangs of
// which no node holds more than n bundles can be dealt out so that none has two on a node (the edges of a bipartite
// graph of degree n have n colours).

// Run is a number of equal gangs that were placed together, by one of their options. What was placed for them is booked
// under the items of the first.
type Run struct {
	Gangs  []*fleet.Gang
	Option int
	Within fleet.Domain
}

// PlaceIdentical places as many of some equal gangs as it can, each whole, by the first option, then others by the
// next. It returns the ledger to go on with, and how many are served: those in front.
func (p *Placer) PlaceIdentical(l *Ledger, gangs []*fleet.Gang) (*Ledger, int) {
	served := 0
	for o := range gangs[0].Options {
		rest := gangs[served:]
		if len(rest) == 0 {
			break
		}
		trial, n := p.placeMost(l, rest, o)
		if n > 0 {
			p.Release(l)
			l, served = trial, served+n
		}
	}
	return l, served
}

// placeMost finds how many of the gangs an option serves: all, or else by bisection.
func (p *Placer) placeMost(l *Ledger, gangs []*fleet.Gang, o int) (*Ledger, int) {
	best, served := p.placeOption(l, gangs, o)
	if served {
		return best, len(gangs)
	}
	least, most := 0, len(gangs)
	for most-least > 1 {
		n := (least + most) / 2
		if least == 0 {
			n = 1 // most often there is no room for any
		}
		trial, served := p.placeOption(l, gangs[:n], o)
		if !served {
			most = n
			continue
		}
		p.Release(best)
		best, least = trial, n
	}
	return best, least
}

// Domains lists where a gang may lie, by the values of its topology label, those alone that hold some of it where any
// does.
func (p *Placer) Domains(l *Ledger, g *fleet.Gang) []fleet.Domain {
	if g.TopologyLabel == "" {
		return []fleet.Domain{{}}
	}
	t := p.Topology(g.TopologyLabel)
	holds := make([]bool, t.Values)
	for i := range l.Classes {
		if value := t.Of[l.Classes[i].Shape.Labels]; value >= 0 && g.Held && slices.Contains(l.Classes[i].placed, g.Number) {
			holds[value] = true
		}
	}
	return t.Domains(func(value int) bool { return !g.Held || holds[value] })
}

// maxDomains is in how many domains one gang is tried. A label may have a value for each node; those without room in
// sum are not tried, so the bound is met only where many have room and the gang still does not fit.
const maxDomains = 64

// Roomy leaves out the domains that have less in sum than the option asks for: on what is there, and on what may be
// launched.
func (p *Placer) Roomy(l *Ledger, all []fleet.Domain, o fleet.Option) []fleet.Domain {
	if len(all) < 2 {
		return all
	}
	need := make(vector.Vector, len(p.Names))
	for _, it := range o.Items {
		for _, t := range it.Need {
			need[t.Resource] += min(vector.TimesAmount(t.Amount, it.Request.Count), raydemand.MaxAmount-need[t.Resource])
		}
	}
	t := all[0].Topology
	lacks := make([]vector.Vector, t.Values)
	for _, d := range all {
		lacks[d.Value] = slices.Clone(need)
	}
	add := func(s *vector.Shape, free vector.Vector, count int64) {
		value := t.Of[s.Labels]
		if value < 0 || count <= 0 {
			return
		}
		for r, lack := range lacks[value] {
			if lack > 0 {
				lacks[value][r] -= min(vector.TimesAmount(free[r], count), lack)
			}
		}
	}
	for i := range l.Classes {
		add(l.Classes[i].Shape, l.Classes[i].Free, l.Classes[i].Count)
	}
	for i := range p.Groups {
		add(p.Groups[i].Shape, p.Groups[i].Shape.Total, min(l.Room[i], l.Spare))
	}
	var roomy []fleet.Domain
	for _, d := range all {
		enough := !slices.ContainsFunc(lacks[d.Value], func(a raydemand.Amount) bool { return a > 0 })
		if enough && len(roomy) < maxDomains {
			roomy = append(roomy, d)
		}
	}
	return roomy
}

// compareLaunches orders what two domains would launch for one option: without accelerators where it needs none, then
// by the objective.
func (p *Placer) compareLaunches(o fleet.Option, a, b []int64) int {
	x, y := p.Costs.LaunchCost(a), p.Costs.LaunchCost(b)
	needs := slices.ContainsFunc(o.Items, func(it *vector.Item) bool { return it.Accelerator })
	if needs || p.Policy.GPUForCPU {
		return x.Compare(&y)
	}
	return cmp.Or(cmp.Compare(p.acceleratedPods(a), p.acceleratedPods(b)), x.Compare(&y))
}

func (p *Placer) acceleratedPods(launched []int64) (pods int64) {
	for i, n := range launched {
		if p.Groups[i].Shape.Accelerated {
			pods += n
		}
	}
	return pods
}
