package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// placeOption places equal gangs by one option, all of them or none, wherever they may go: in one domain after the
// other if a gang has a topology label. It takes the placement with the best launches. The first one that needs no
// launch ends the search, because nothing is better.
func (p *Search) placeOption(l *Ledger, gangs []*Gang, o int) (best *Ledger, ok bool) {
	g := gangs[0]
	option := g.Options[o]
	for _, d := range p.roomy(l, p.domains(l, g), option) {
		b := p.newBatch("gang", option.Items, l.how)
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
			l, served = trial, served+n
		}
	}
	return l, served
}

// placeMost finds how many of the gangs an option serves: all, or fewer by bisection.
func (p *Search) placeMost(l *Ledger, gangs []*Gang, o int) (*Ledger, int) {
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
		p.release(best)
		best, least = trial, n
	}
	return best, least
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
func (p *Search) roomy(l *Ledger, all []Domain, o Option) []Domain {
	if len(all) < 2 {
		return all
	}
	need := make(Vector, len(p.Names))
	for _, it := range o.Items {
		for _, t := range it.Need {
			all := timesAmount(t.Amount, it.Request.Count)
			need[t.Resource] += min(all, raydemand.MaxAmount-need[t.Resource])
		}
	}
	t := all[0].Topology
	lacks := make([]Vector, t.values)
	for _, d := range all {
		lacks[d.Value] = slices.Clone(need)
	}
	add := func(s *Shape, free Vector, count int64) {
		value := t.Of[s.Labels]
		if value < 0 || count <= 0 {
			return
		}
		for r, lack := range lacks[value] {
			if lack > 0 {
				lacks[value][r] -= min(timesAmount(free[r], count), lack)
			}
		}
	}
	for i := range l.classes {
		add(l.classes[i].Shape, l.classes[i].free, l.classes[i].count)
	}
	for i := range p.Groups {
		add(p.Groups[i].Shape, p.Groups[i].Shape.Total, min(l.room[i], l.spare))
	}
	var roomy []Domain
	for _, d := range all {
		enough := !slices.ContainsFunc(lacks[d.Value], func(a raydemand.Amount) bool { return a > 0 })
		if enough && len(roomy) < maxDomains {
			roomy = append(roomy, d)
		}
	}
	return roomy
}

// compareLaunches orders the launches of two domains for one option: without accelerators if the option needs none,
// then by cost.
func (p *Search) compareLaunches(o Option, a, b []int64) int {
	x, y := p.Costs.launchCost(a), p.Costs.launchCost(b)
	needs := slices.ContainsFunc(o.Items, func(it *Item) bool { return it.accelerator })
	if needs {
		return x.compare(&y)
	}
	return cmp.Or(cmp.Compare(p.acceleratedPods(a), p.acceleratedPods(b)), x.compare(&y))
}

func (p *Search) acceleratedPods(launched []int64) (pods int64) {
	for i, n := range launched {
		if p.Groups[i].Shape.Accelerated {
			pods += n
		}
	}
	return pods
}
