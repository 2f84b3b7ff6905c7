package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// topology tells label sets apart by their value of one label. Values are numbered in order of their names.
type topology struct {
	// of is the number of each label set's value, or below 0 where the set lacks the label.
	of     []int
	values int
}

// domain is where a gang may lie: nodes and groups with one value of a topology. The zero one is everywhere.
type domain struct {
	*topology
	value int
}

func (d domain) admits(labels int) bool { return d.topology == nil || d.of[labels] == d.value }

// topology numbers the values of a label, once for each label.
func (p *planning) topology(label string) *topology {
	if known := p.topologies[label]; known != nil {
		return known
	}
	var values []string
	for _, labels := range p.sets {
		if value, ok := labels[label]; ok {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	made := &topology{of: make([]int, len(p.sets)), values: len(values)}
	for set, labels := range p.sets {
		made.of[set] = -1
		if value, ok := labels[label]; ok {
			made.of[set], _ = slices.BinarySearch(values, value)
		}
	}
	if p.topologies == nil {
		p.topologies = map[string]*topology{}
	}
	p.topologies[label] = made
	return made
}

// domains lists where a gang may lie, by the values of its topology label, those alone that hold some of it where any does.
func (p *planning) domains(l *ledger, g *gang) []domain {
	if g.TopologyLabel == "" {
		return []domain{{}}
	}
	t := p.topology(g.TopologyLabel)
	holds := make([]bool, t.values)
	for i := range l.lots {
		if value := t.of[l.lots[i].shape.labels]; value >= 0 && g.held && slices.Contains(l.lots[i].placed, g.number) {
			holds[value] = true
		}
	}
	var all []domain
	for value := range t.values {
		if !g.held || holds[value] {
			all = append(all, domain{t, value})
		}
	}
	return all
}

// maxDomains is in how many domains one gang is tried. A label may have a value for each node; those without room in sum
// are not tried, so the bound is met only where many have room and the gang still does not fit.
const maxDomains = 64

// roomy leaves out the domains that have less in sum than the option asks for: on what is there, and on what may be launched.
func (p *planning) roomy(l *ledger, all []domain, o option) []domain {
	if len(all) < 2 {
		return all
	}
	need := make(vector, len(p.names))
	for _, it := range o.items {
		for _, t := range it.need {
			need[t.resource] += min(times(t.amount, it.request.Count), raydemand.MaxAmount-need[t.resource])
		}
	}
	t := all[0].topology
	lacks := make([]vector, t.values)
	for _, d := range all {
		lacks[d.value] = slices.Clone(need)
	}
	add := func(s *shape, free vector, count int64) {
		value := t.of[s.labels]
		if value < 0 || count <= 0 {
			return
		}
		for r, lack := range lacks[value] {
			if lack > 0 {
				lacks[value][r] -= min(times(free[r], count), lack)
			}
		}
	}
	for i := range l.lots {
		add(l.lots[i].shape, l.lots[i].free, l.lots[i].count)
	}
	for i := range p.groups {
		add(p.groups[i].shape, p.groups[i].shape.total, min(l.room[i], l.spare))
	}
	var roomy []domain
	for _, d := range all {
		enough := !slices.ContainsFunc(lacks[d.value], func(a raydemand.Amount) bool { return a > 0 })
		if enough && len(roomy) < maxDomains {
			roomy = append(roomy, d)
		}
	}
	return roomy
}

// times is an amount taken n times, at most as much as can be counted.
func times(a raydemand.Amount, n int64) raydemand.Amount {
	if a > 0 && n > int64(raydemand.MaxAmount/a) {
		return raydemand.MaxAmount
	}
	return a * raydemand.Amount(n)
}

// compareLaunches orders what two domains would launch for one option: without accelerators where it needs none, then by the
// objective.
func (p *planning) compareLaunches(o option, a, b []int64) int {
	x, y := p.verdict(a, &outcome{}), p.verdict(b, &outcome{})
	needs := slices.ContainsFunc(o.items, func(it *item) bool { return it.accelerator })
	if needs || p.policy.GPUForCPU {
		return x.compare(&y)
	}
	return cmp.Or(cmp.Compare(p.acceleratedPods(a), p.acceleratedPods(b)), x.compare(&y))
}

func (p *planning) acceleratedPods(launched []int64) (pods int64) {
	for i, n := range launched {
		if p.groups[i].shape.accelerated {
			pods += n
		}
	}
	return pods
}
