package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// domains lists where a gang may lie, by the values of its topology label, those alone that hold some of it where any does.
func (p *Placer) domains(l *ledger, g *fleet.Gang) []fleet.Domain {
	if g.TopologyLabel == "" {
		return []fleet.Domain{{}}
	}
	t := p.Topology(g.TopologyLabel)
	holds := make([]bool, t.Values)
	for i := range l.lots {
		if value := t.Of[l.lots[i].shape.Labels]; value >= 0 && g.Held && slices.Contains(l.lots[i].placed, g.Number) {
			holds[value] = true
		}
	}
	return t.Domains(func(value int) bool { return !g.Held || holds[value] })
}

// topologyReason explains a choice of a gang that is not served though each of its bundles could be, if they need not share a label. Where the
// bundles that it holds are in the way nothing is impossible: with those lost the gang could be had elsewhere.
func (w *words) topologyReason(g *fleet.Gang, o fleet.Option, bundles int, given []int64, reason model.Reason) model.Reason {
	label := g.TopologyLabel
	open := w.domains(&ledger{lots: w.base}, g)
	all := w.Topology(label).Domains(func(int) bool { return true })
	reasons := phrase.List(w.considered(o.Items, given, label, open...))
	switch {
	case len(all) == 0:
		return model.Reason{Code: model.Impossible, Message: fmt.Sprintf("no node and no group has the label %s that the gang wants to share", label)}
	case !w.possibleWithin(o, all):
		return model.Reason{Code: model.Impossible, Message: fmt.Sprintf("no value of the label %s has nodes or groups for each of the bundles: %s", label, reasons)}
	case len(open) == 0:
		return model.Reason{Code: model.Capped, Message: fmt.Sprintf("the gang wants to share the label %s, and the nodes that hold its other bundles do not have it", label)}
	case !w.possibleWithin(o, open):
		return model.Reason{Code: model.Capped, Message: fmt.Sprintf("its other bundles lie on %s, where no node and no group could hold the rest: %s", w.valuesOf(open, label), reasons)}
	case g.Held:
		return model.Reason{Code: w.codeWithin(o, given, open), Message: fmt.Sprintf("its other bundles lie on %s, which has no room for the other %d: %s", w.valuesOf(open, label), bundles, reasons)}
	}
	reason.Message = fmt.Sprintf("no value of the label %s has room for all %d bundles: %s", label, bundles, reason.Message)
	return reason
}

// valuesOf writes domains: rack=1.
func (w *words) valuesOf(domains []fleet.Domain, label string) string {
	var values []string
	for _, d := range domains {
		set := slices.Index(d.Of, d.Value)
		values = append(values, label+"="+w.Sets[set][label])
	}
	return strings.Join(values, ", ")
}

// codeWithin says what stands in the way within domains alone: what another value's groups wait for does not matter.
func (w *words) codeWithin(o fleet.Option, given []int64, domains []fleet.Domain) string {
	able, closed := false, true
	for i := range w.Groups {
		group := &w.Groups[i]
		inside := slices.ContainsFunc(domains, func(d fleet.Domain) bool { return d.Admits(group.Shape.Labels) })
		if !inside || !vector.SuitsAny(o.Items, group.Shape) {
			continue
		}
		if group.Blocked.Code == model.CodeCoolingDown && group.Current+given[i]+group.Hosts <= group.MaxPods && w.Spare(given) >= group.Hosts {
			return model.CoolingDown
		}
		able, closed = true, closed && group.Blocked.Code == model.CodeClosed
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
func (p *Placer) roomy(l *ledger, all []fleet.Domain, o fleet.Option) []fleet.Domain {
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
	for i := range l.lots {
		add(l.lots[i].shape, l.lots[i].free, l.lots[i].count)
	}
	for i := range p.Groups {
		add(p.Groups[i].Shape, p.Groups[i].Shape.Total, min(l.room[i], l.spare))
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

// compareLaunches orders what two domains would launch for one option: without accelerators where it needs none, then by the
// objective.
func (p *Placer) compareLaunches(o fleet.Option, a, b []int64) int {
	x, y := p.yard.LaunchCost(a), p.yard.LaunchCost(b)
	needs := slices.ContainsFunc(o.Items, func(it *vector.Item) bool { return it.Accelerator })
	if needs || p.policy.GPUForCPU {
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
