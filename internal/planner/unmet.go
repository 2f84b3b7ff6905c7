package planner

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// unmetReason says why an item is not served: which groups were considered and why none was taken. Impossible: no group
// and no node could ever serve it. CoolingDown: some group could within its limits once it is tried again. Closed: every
// group that could takes no launches now. Capped: a limit stands in the way.
func (p *planning) unmetReason(items []*item, given []int64, topology string) Reason {
	for _, it := range items {
		if !p.possible(it) {
			return Reason{Impossible, p.nearestMiss(it)}
		}
	}
	able, closed, cooling := false, true, false
	for i := range p.groups {
		g := &p.groups[i]
		if !suitsAny(items, g.shape) || !g.carries(topology) {
			continue
		}
		able = true
		closed = closed && g.shut.Code == CodeClosed
		cooling = cooling || g.shut.Code == CodeCoolingDown && g.current+given[i]+g.hosts <= g.max && p.spare(given) >= g.hosts
	}
	reasons := listed(p.considered(items, given, topology))
	switch {
	case !able:
		return Reason{Capped, "only nodes that are there already could serve it, and what they have is taken"}
	case cooling:
		return Reason{CoolingDown, reasons}
	case closed:
		return Reason{Closed, reasons}
	}
	return Reason{Capped, reasons}
}

// carries reports whether the group's pods carry a label that a gang wants to share, if it does.
func (g *group) carries(topology string) bool {
	_, has := g.Labels[topology]
	return topology == "" || has
}

// listed joins the first sentences and counts the others.
func listed(sentences []string) string {
	const most = 4
	seen := map[string]bool{}
	var different []string
	for _, s := range sentences {
		if !seen[s] {
			different = append(different, s)
		}
		seen[s] = true
	}
	if more := len(different) - most; more > 0 {
		different = append(different[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(different, "; ")
}

// possible reports whether some group or some node that stays could ever serve one bundle. A maximum of 0 is a limit
// like any other: Ray may cancel what it is told is impossible, so the word is used for nothing that a limit explains.
func (p *planning) possible(it *item) bool {
	for i := range p.groups {
		if it.suits(p.groups[i].shape) {
			return true
		}
	}
	for i := range p.base {
		if it.suits(p.base[i].shape) {
			return true
		}
	}
	return false
}

// nearestMiss says what the best group lacks.
func (p *planning) nearestMiss(it *item) string {
	if len(p.groups) == 0 {
		return fmt.Sprintf("needs %s; there is no worker group", Describe(it.request))
	}
	if len(it.need) > 0 {
		if text := p.missedAlone(it); text != "" {
			return text
		}
	}
	return fmt.Sprintf("no group has all of %s: %s", Describe(it.request), listed(p.considered([]*item{it}, nil, "")))
}

// missedAlone names a resource of which no group has enough, whatever else is asked for.
func (p *planning) missedAlone(it *item) string {
	for _, t := range it.need {
		best := 0
		for i := range p.groups {
			if p.groups[i].shape.total[t.resource] > p.groups[best].shape.total[t.resource] {
				best = i
			}
		}
		name, has := p.names[t.resource], p.groups[best].shape.total[t.resource]
		switch {
		case has >= t.amount:
			continue
		case has == 0:
			return fmt.Sprintf("needs %s %s; no group has any", quantity(name, t.amount), name)
		}
		return fmt.Sprintf("needs %s %s; the largest group has %s (%s)", quantity(name, t.amount), name, quantity(name, has), p.groups[best].Name)
	}
	return ""
}

// gangReason explains a gang that is not served, by the first of its options that is possible at all.
func (p *planning) gangReason(g *gang, given []int64) Reason {
	reason := p.unmetReason(g.options[0].items, given, g.TopologyLabel)
	for _, o := range g.options[1:] {
		if reason.Code == Impossible {
			if other := p.unmetReason(o.items, given, g.TopologyLabel); other.Code != Impossible {
				reason = other
			}
		}
	}
	if reason.Code == Impossible && g.Strategy == raydemand.StrictPack && len(g.Bundles) > 1 {
		reason.Message = "all bundles on one node: " + reason.Message
	}
	if reason.Code == Impossible {
		return reason
	}
	domains := p.domains(&ledger{lots: p.base}, g)
	switch {
	case g.TopologyLabel != "" && len(domains) == 0:
		return Reason{Impossible, fmt.Sprintf("no node and no group has the label %s that the gang wants to share", g.TopologyLabel)}
	case g.TopologyLabel != "" && !p.possibleWithin(g, domains):
		return Reason{Impossible, fmt.Sprintf("no value of the label %s has nodes or groups for each of the bundles: %s", g.TopologyLabel,
			listed(p.considered(g.options[0].items, given, g.TopologyLabel)))}
	case g.TopologyLabel != "":
		reason.Message = fmt.Sprintf("no value of the label %s has room for all %d bundles: %s", g.TopologyLabel, len(g.Bundles), reason.Message)
	case g.Strategy == raydemand.StrictSpread:
		reason.Message = fmt.Sprintf("needs %d different nodes at once: %s", len(g.Bundles), reason.Message)
	case len(g.Bundles) > 1:
		reason.Message = fmt.Sprintf("needs all %d bundles at once: %s", len(g.Bundles), reason.Message)
	}
	return reason
}

// possibleWithin reports whether for some option of a gang some domain has for each of its bundles a group or a node that
// could ever hold it.
func (p *planning) possibleWithin(g *gang, domains []domain) bool {
	holds := func(it *item, within domain) bool {
		return slices.ContainsFunc(p.groups, func(g group) bool { return within.admits(g.shape.labels) && it.suits(g.shape) }) ||
			slices.ContainsFunc(p.base, func(l lot) bool { return within.admits(l.shape.labels) && it.suits(l.shape) })
	}
	for _, within := range domains {
		for _, o := range g.options {
			if !slices.ContainsFunc(o.items, func(it *item) bool { return !holds(it, within) }) {
				return true
			}
		}
	}
	return false
}
