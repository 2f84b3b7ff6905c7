package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
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

// numberTopologies numbers the values of each label that some gang wants to share.
func (r *roster) numberTopologies(gangs []raydemand.Gang) {
	r.topologies = map[string]*topology{}
	for i := range gangs {
		if label := gangs[i].TopologyLabel; label != "" && r.topologies[label] == nil {
			r.topologies[label] = r.newTopology(label)
		}
	}
}

// topology returns the numbered values of a label that some gang wants to share.
func (r *roster) topology(label string) *topology { return r.topologies[label] }

func (r *roster) newTopology(label string) *topology {
	var values []string
	for _, labels := range r.Sets {
		if value, ok := labels[label]; ok {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	made := &topology{of: make([]int, len(r.Sets)), values: len(values)}
	for set, labels := range r.Sets {
		made.of[set] = -1
		if value, ok := labels[label]; ok {
			made.of[set], _ = slices.BinarySearch(values, value)
		}
	}
	return made
}

// domains lists where a gang may lie, by the values of its topology label, those alone that hold some of it where any does.
func (p *Placer) domains(l *ledger, g *gang) []domain {
	if g.TopologyLabel == "" {
		return []domain{{}}
	}
	t := p.topology(g.TopologyLabel)
	holds := make([]bool, t.values)
	for i := range l.lots {
		if value := t.of[l.lots[i].shape.Labels]; value >= 0 && g.held && slices.Contains(l.lots[i].placed, g.number) {
			holds[value] = true
		}
	}
	return t.domains(func(value int) bool { return !g.held || holds[value] })
}

func (t *topology) domains(wanted func(value int) bool) (all []domain) {
	for value := range t.values {
		if wanted(value) {
			all = append(all, domain{t, value})
		}
	}
	return all
}

// topologyReason explains a choice of a gang that is not served though each of its bundles could be, if they need not share a label. Where the
// bundles that it holds are in the way nothing is impossible: with those lost the gang could be had elsewhere.
func (w *words) topologyReason(g *gang, o option, bundles int, given []int64, reason model.Reason) model.Reason {
	label := g.TopologyLabel
	open := w.domains(&ledger{lots: w.base}, g)
	all := w.topology(label).domains(func(int) bool { return true })
	reasons := phrase.List(w.considered(o.items, given, label, open...))
	switch {
	case len(all) == 0:
		return model.Reason{Code: model.Impossible, Message: fmt.Sprintf("no node and no group has the label %s that the gang wants to share", label)}
	case !w.possibleWithin(o, all):
		return model.Reason{Code: model.Impossible, Message: fmt.Sprintf("no value of the label %s has nodes or groups for each of the bundles: %s", label, reasons)}
	case len(open) == 0:
		return model.Reason{Code: model.Capped, Message: fmt.Sprintf("the gang wants to share the label %s, and the nodes that hold its other bundles do not have it", label)}
	case !w.possibleWithin(o, open):
		return model.Reason{Code: model.Capped, Message: fmt.Sprintf("its other bundles lie on %s, where no node and no group could hold the rest: %s", w.valuesOf(open, label), reasons)}
	case g.held:
		return model.Reason{Code: w.codeWithin(o, given, open), Message: fmt.Sprintf("its other bundles lie on %s, which has no room for the other %d: %s", w.valuesOf(open, label), bundles, reasons)}
	}
	reason.Message = fmt.Sprintf("no value of the label %s has room for all %d bundles: %s", label, bundles, reason.Message)
	return reason
}

// valuesOf writes domains: rack=1.
func (w *words) valuesOf(domains []domain, label string) string {
	var values []string
	for _, d := range domains {
		set := slices.Index(d.of, d.value)
		values = append(values, label+"="+w.Sets[set][label])
	}
	return strings.Join(values, ", ")
}

// codeWithin says what stands in the way within domains alone: what another value's groups wait for does not matter.
func (w *words) codeWithin(o option, given []int64, domains []domain) string {
	able, closed := false, true
	for i := range w.groups {
		group := &w.groups[i]
		inside := slices.ContainsFunc(domains, func(d domain) bool { return d.admits(group.shape.Labels) })
		if !inside || !vector.SuitsAny(o.items, group.shape) {
			continue
		}
		if group.shut.Code == model.CodeCoolingDown && group.current+given[i]+group.hosts <= group.max && w.spare(given) >= group.hosts {
			return model.CoolingDown
		}
		able, closed = true, closed && group.shut.Code == model.CodeClosed
	}
	if able && closed {
		return model.Closed
	}
	return model.Capped
}

// maxDomains is in how many domains one gang is tried. A label may have a value for each node; those without room in sum
// are not tried, so the bound is met only where many have room and the gang still does not fit.
const maxDomains = 64

// roomy leaves out the domains that have less in sum than the option asks for: on what is there, and on what may be launched.
func (p *Placer) roomy(l *ledger, all []domain, o option) []domain {
	if len(all) < 2 {
		return all
	}
	need := make(vector.Vector, len(p.Names))
	for _, it := range o.items {
		for _, t := range it.Need {
			need[t.Resource] += min(vector.TimesAmount(t.Amount, it.Request.Count), raydemand.MaxAmount-need[t.Resource])
		}
	}
	t := all[0].topology
	lacks := make([]vector.Vector, t.values)
	for _, d := range all {
		lacks[d.value] = slices.Clone(need)
	}
	add := func(s *vector.Shape, free vector.Vector, count int64) {
		value := t.of[s.Labels]
		if value < 0 || count <= 0 {
			return
		}
		for r, lack := range lacks[value] {
			if lack > 0 {
				lacks[value][r] -= min(vector.TimesAmount(free[r], count), lack)
			}
		}
	}
	for i := range l.lots {
		add(l.lots[i].shape, l.lots[i].free, l.lots[i].count)
	}
	for i := range p.groups {
		add(p.groups[i].shape, p.groups[i].shape.Total, min(l.room[i], l.spare))
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

// compareLaunches orders what two domains would launch for one option: without accelerators where it needs none, then by the
// objective.
func (p *Placer) compareLaunches(o option, a, b []int64) int {
	x, y := p.yard.bill(a), p.yard.bill(b)
	needs := slices.ContainsFunc(o.items, func(it *vector.Item) bool { return it.Accelerator })
	if needs || p.policy.GPUForCPU {
		return x.compare(&y)
	}
	return cmp.Or(cmp.Compare(p.acceleratedPods(a), p.acceleratedPods(b)), x.compare(&y))
}

func (p *Placer) acceleratedPods(launched []int64) (pods int64) {
	for i, n := range launched {
		if p.groups[i].shape.Accelerated {
			pods += n
		}
	}
	return pods
}
