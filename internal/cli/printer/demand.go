package printer

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// mostKinds is how many kinds of demand a list shows; namedGangs is how many of several identical gangs it names.
const (
	mostKinds  = 40
	namedGangs = 3
)

// writeDemand lists the demand with its outcomes. Identical gangs are one entry. scaled is false if nothing carries out
// the plan.
func writeDemand(p *Page, all []planner.DemandSummary, scaled bool) {
	p.Line("", "Demand")
	tally := (*planner.DemandSummary).Tally
	if !scaled {
		tally = (*planner.DemandSummary).TallyIfScaled
	}
	var rest planner.DemandSummary
	kinds := foldDemand(all)
	for i, k := range kinds {
		if i >= mostKinds {
			rest.Join(k.DemandSummary)
			continue
		}
		p.Line("  ", k.text())
		p.Line("    ", tally(&k.DemandSummary))
	}
	if more := len(kinds) - mostKinds; more > 0 {
		p.Line("  ", fmt.Sprintf("and %s of demand, %d asked", moreKinds(more), rest.Asked))
		p.Line("    ", tally(&rest))
	}
	if len(all) == 0 {
		p.Line("  ", "none")
	}
}

func moreKinds(n int) string {
	if n == 1 {
		return "1 more kind"
	}
	return fmt.Sprintf("%d more kinds", n)
}

// foldedDemand is one entry of a summary, or several identical gangs.
type foldedDemand struct {
	planner.DemandSummary
	gangs []raydemand.Gang
}

func foldDemand(all []planner.DemandSummary) []*foldedDemand {
	var kinds []*foldedDemand
	known := map[string]*foldedDemand{}
	for _, d := range all {
		if d.Kind != planner.KindGang {
			kinds = append(kinds, &foldedDemand{DemandSummary: d})
			continue
		}
		words := gangWords(*d.Gang)
		k := known[words]
		if k == nil {
			k = &foldedDemand{DemandSummary: d}
			known[words] = k
			kinds = append(kinds, k)
		} else {
			k.Join(d)
		}
		k.gangs = append(k.gangs, *d.Gang)
	}
	return kinds
}

func (k *foldedDemand) text() string {
	asked := raydemand.Request{
		Bundle:    k.Resources,
		Count:     k.Asked,
		Selectors: k.Selectors,
		Slice:     k.Slice,
		Moving:    k.Moving,
	}
	switch {
	case len(k.gangs) > 0:
		return describeGangs(k.gangs)
	case k.OverREST:
		return "requests over REST " + counted(asked) // including those of owners
	case k.Kind == planner.KindRequestResources:
		return "request_resources " + counted(asked)
	}
	return counted(asked)
}

func counted(r raydemand.Request) string {
	return fmt.Sprintf("%d × %s", r.Count, planner.Describe(r))
}

// describeGangs writes identical gangs: gang 3f2a PACK 2 × {GPU 1}, or 300 gangs 3f2a, 40b1, 51c7, … each PACK 2 × {GPU
// 1}.
func describeGangs(gangs []raydemand.Gang) string {
	if len(gangs) == 1 {
		return DescribeGang(gangs[0])
	}
	var ids []string
	for _, g := range gangs {
		ids = append(ids, g.ID)
	}
	named := strings.Join(NonEmpty(ids...), ", ")
	if len(ids) > namedGangs {
		named = strings.Join(NonEmpty(ids[:namedGangs]...), ", ") + ", …"
	}
	if ids[0] == "" {
		named = ""
	}
	return strings.Join(NonEmpty(fmt.Sprintf("%d gangs", len(gangs)), named, "each", gangWords(gangs[0])), " ")
}

// DescribeGang writes a placement group's id and bundles.
func DescribeGang(g raydemand.Gang) string {
	return strings.Join(NonEmpty("gang", g.ID, gangWords(g)), " ")
}

// gangWords writes everything that a gang requests: PACK 2 × {GPU 1} on nodes of one zone, else 4 × {CPU 1}.
func gangWords(g raydemand.Gang) string {
	text := strings.Join(NonEmpty(string(g.Strategy), describeBundles(g.Bundles, g.BundleSelectors)), " ")
	if g.TopologyLabel != "" {
		text += " on nodes of one " + g.TopologyLabel
	}
	for i, bundles := range g.Fallbacks {
		text += ", else " + describeBundles(bundles, g.SelectorsOf(i))
	}
	return text
}

// describeBundles writes consecutive equal bundles once, with their count.
func describeBundles(bundles []raydemand.Bundle, selectors []raydemand.Selector) string {
	text := func(i int) string {
		r := raydemand.Request{Bundle: bundles[i]}
		if i < len(selectors) {
			r.Selectors = selectors[i : i+1]
		}
		return planner.Describe(r)
	}
	var parts []string
	for i := 0; i < len(bundles); {
		own, n := text(i), 1
		for i++; i < len(bundles) && text(i) == own; i++ {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d × %s", n, own))
	}
	return strings.Join(parts, ", ")
}

// NothingUnmetIfScaled describes the unmet demand of a RayCluster that Heliostat does not scale, if the plan would
// serve all demand.
const NothingUnmetIfScaled = "nothing, if Heliostat scaled it; the launches of the plan are not carried out"

// writeUnmet lists unserved demand, grouped by reason, and the groups below their minimum. scaled is false if nothing
// carries out the plan.
func writeUnmet(p *Page, unmet []apiv1.Unmet, groups []planner.GroupPlan, scaled bool) {
	p.Line("", "")
	p.Line("", "Unmet")
	gangs := map[string][]raydemand.Gang{} // those alike
	kindOf := func(u apiv1.Unmet) string { return gangWords(*u.Gang) + "\x00" + u.Reason.Code + u.Reason.Message }
	for _, u := range unmet {
		if u.Gang != nil {
			gangs[kindOf(u)] = append(gangs[kindOf(u)], *u.Gang)
		}
	}
	var list unmetList
	for _, u := range unmet {
		if u.Gang == nil {
			asked := foldedDemand{DemandSummary: planner.DemandSummary{Resources: u.Resources,
				Selectors: u.LabelSelectors, Slice: u.Slice, Moving: u.Moving, OverREST: u.OverREST, Asked: u.Count}}
			if u.Kind == apiv1.UnmetKindRequestResources {
				asked.Kind = planner.KindRequestResources
			}
			list.add(asked.text()+inBrackets(u.AskedBy), u.Reason)
		} else if alike := gangs[kindOf(u)]; alike != nil {
			list.add(describeGangs(alike), u.Reason)
			delete(gangs, kindOf(u))
		}
	}
	list.write(p)
	if short := writeMinimums(p, groups); len(list.order)+short == 0 {
		p.Line("  ",
			map[bool]string{true: "nothing: all demand is served or on its way", false: NothingUnmetIfScaled}[scaled])
	}
}

// inBrackets formats the owner of a request, if it is known.
func inBrackets(who string) string {
	if who == "" {
		return ""
	}
	return " (" + who + ")"
}

// unmetList is unserved demand by its reason, in order.
type unmetList struct {
	order []planner.Reason
	what  map[planner.Reason][]string
}

func (l *unmetList) add(what string, reason planner.Reason) {
	if l.what == nil {
		l.what = map[planner.Reason][]string{}
	}
	if l.what[reason] == nil {
		l.order = append(l.order, reason)
	}
	l.what[reason] = append(l.what[reason], what)
}

func (l *unmetList) write(p *Page) {
	const named = 3 // of one reason
	for i, reason := range l.order {
		if i == mostKinds {
			p.Line(
				"  ",
				fmt.Sprintf("and %s of demand for other reasons; see autoscaler explain --demand",
					moreKinds(len(l.order)-mostKinds)),
			)
			return
		}
		what := l.what[reason]
		text := strings.Join(what[:min(len(what), named)], ", ")
		if more := len(what) - named; more > 0 {
			text += " and " + moreKinds(more)
		}
		p.Line("  ", text+": "+codeAndMessage(reason.Code, reason.Message))
	}
}

// codeAndMessage writes a reason with its code, by which docs/reference/reasons.md explains it. It drops the words of
// the code from the beginning of the message.
func codeAndMessage(code, message string) string {
	words := strings.ReplaceAll(code, "_", " ")
	if len(message) > len(words) && strings.EqualFold(message[:len(words)], words) {
		rest := message[len(words):]
		if strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, " for ") {
			message = strings.TrimLeft(rest, ": ")
		}
	}
	return code + ": " + message
}
