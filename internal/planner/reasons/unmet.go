package reasons

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/internal/typo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// UnmetReason explains why an item is not served: which groups were considered, and why none was chosen. Impossible: no
// group and no node could ever serve it. CoolingDown: a group could within its limits, after its cool-down. Trying:
// only pods that are tried could. PoolPromised: a group could, on nodes that are promised to other RayClusters.
// Closed: every group that could is closed to launches. Capped: a limit prevents it.
// TooMany: it is not this demand's turn.
func (w *Writer) UnmetReason(items []*vector.Item, given []int64, topology string) model.Reason {
	w.BreakOff()
	for _, it := range items {
		if reason, ok := w.unmetAlone(it, given); ok {
			return reason
		}
	}
	groups := w.consider(items, given, topology)
	if code := w.codeOf(groups.could, given); code != "" {
		return model.Reason{Code: code, Message: phrase.List(w.sentences(groups))}
	}
	if reason, open := w.openReason(items, nil, given); open {
		return reason
	}
	return model.Reason{
		Code:    model.Capped,
		Message: "only existing nodes could serve it, and they do not have enough room",
	}
}

// unmetAlone explains an item that nothing can serve, whatever room there is. It reports false if something can.
func (w *Writer) unmetAlone(it *vector.Item, given []int64) (model.Reason, bool) {
	switch {
	case it.Deferred:
		return w.tooMany(), true
	case !w.Possible(it):
		return model.Reason{Code: model.Impossible, Message: w.nearestMiss(it, given)}, true
	case !w.Certain(it):
		return w.openReason([]*vector.Item{it}, nil, given)
	}
	return model.Reason{}, false
}

// hasItsTurn says what becomes of demand that is too much for one plan.
const hasItsTurn = "the next plans continue with this one"

// tooMany explains an item that is too much for this plan.
func (w *Writer) tooMany() model.Reason {
	return model.Reason{Code: model.TooMany, Message: fmt.Sprintf(
		"there are more different requests than the %d that one plan takes on; "+hasItsTurn, w.MaxShapes())}
}

// codeOf returns the code of demand that only these groups could serve, or "" if no pod of theirs will ever run.
func (w *Writer) codeOf(could []verdict, given []int64) string {
	able, closed := false, true
	codes := map[string]bool{}
	for _, v := range could {
		g := &w.Groups[v.group]
		if g.Hopeless() {
			continue
		}
		able, closed = true, closed && g.Blocked.Code == model.CodeClosed && !g.Excluded()
		codes[v.Code] = true
		if v.Code == model.CodeCoolingDown &&
			g.Current+given[v.group]+g.Hosts <= g.MaxPods && w.Spare(given) >= g.Hosts {
			return model.CoolingDown
		}
	}
	follows := codes[model.CodeInFlight] || codes[model.CodeConservative] || codes[model.CodeNotInFull]
	switch {
	case !able:
		return ""
	case codes[model.CodeTrying] && !follows:
		return model.Trying
	case codes[model.CodePoolPromised] && !follows:
		return model.PoolPromised
	case closed:
		return model.Closed
	}
	return model.Capped
}

// nearestMiss explains what the closest group lacks.
func (w *Writer) nearestMiss(it *vector.Item, given []int64) string {
	if slices.ContainsFunc(w.Groups, func(g fleet.Group) bool { return it.Suits(g.Shape) }) {
		return phrase.List(w.Considered([]*vector.Item{it}, given, ""))
	}
	if len(w.Groups) == 0 {
		return fmt.Sprintf("needs %s; there is no worker group", phrase.Describe(it.Asked()))
	}
	if len(it.Need) > 0 {
		if text := w.missedAlone(it); text != "" {
			return text + w.labelledNowhere(it)
		}
	}
	return fmt.Sprintf(
		"no group has all of %s: %s",
		phrase.Describe(it.Asked()),
		phrase.List(w.Considered([]*vector.Item{it}, nil, "")),
	)
}

// labelledNowhere reports that no group has the labels that an item selects.
func (w *Writer) labelledNowhere(it *vector.Item) string {
	if slices.ContainsFunc(
		w.Groups,
		func(g fleet.Group) bool { return vector.FirstMatch(it.Request.Selectors, g.Labels) != vector.NoMatch },
	) {
		return ""
	}
	wanted := make([]string, len(it.Request.Selectors))
	for i, selector := range it.Request.Selectors {
		wanted[i] = selector.String()
	}
	return "; no group has the labels " + strings.Join(wanted, ", else ")
}

// missedAlone names a resource of which no group has enough, regardless of the others.
func (w *Writer) missedAlone(it *vector.Item) string {
	for _, t := range it.Need {
		best := 0
		for i := range w.Groups {
			if w.Groups[i].Shape.Total[t.Resource] > w.Groups[best].Shape.Total[t.Resource] {
				best = i
			}
		}
		name, has := w.Names[t.Resource], w.Groups[best].Shape.Total[t.Resource]
		switch {
		case w.Groups[best].Shape.Total.Has(t):
			continue
		case has >= t.Amount:
			return fmt.Sprintf("%s; the largest group has %s (%s)", t.Pieces.Needs(name), has, w.Groups[best].Name)
		}
		needs, largest := phrase.Pair(name, t.Amount, has)
		if has == 0 {
			return fmt.Sprintf("needs %s %s; no group has any%s", needs, name, w.meantFor(name))
		}
		return fmt.Sprintf("needs %s %s; the largest group has %s (%s)", needs, name, largest, w.Groups[best].Name)
	}
	return ""
}

// meantFor suggests a name for a resource that no group has: the same name in another case, such as Ray's CPU and GPU,
// or the similar name of a resource that exists.
func (w *Writer) meantFor(name string) string {
	known := w.resourcesThere()
	if slices.Contains(known, name) {
		return ""
	}
	if other := typo.OtherCase(name, known); other != "" {
		return fmt.Sprintf("; did you mean %s? Resource names are case-sensitive", other)
	}
	if near := typo.Likely(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// resourcesThere lists the resources of all groups and nodes, except those that Ray adds by itself.
func (w *Writer) resourcesThere() []string {
	if w.existing != nil {
		return w.existing
	}
	names := map[string]bool{}
	see := func(b raydemand.Bundle) {
		for name, amount := range b {
			if amount > 0 && !vector.AddedByRay(name) {
				names[name] = true
			}
		}
	}
	for i := range w.Groups {
		see(w.Groups[i].Resources)
	}
	for i := range w.Nodes {
		see(w.Nodes[i].Total)
	}
	w.existing = slices.Sorted(maps.Keys(names))
	return w.existing
}

// GangReason explains, choice by choice, why a gang is not served. The code is that of the first choice that is
// possible at all.
func (w *Writer) GangReason(g *fleet.Gang, given []int64) model.Reason {
	if g.Deferred {
		return model.Reason{
			Code: model.TooMany,
			Message: fmt.Sprintf(
				"there are more different gangs than the %d that one plan takes on; "+hasItsTurn,
				w.MaxGangs(),
			),
		}
	}
	bundles := g.Alternatives()
	if len(g.Options) == 1 {
		return w.optionReason(g, g.Options[0], len(bundles[0]), given)
	}
	var whole model.Reason
	messages := make([]string, len(g.Options))
	for i, o := range g.Options {
		reason := w.optionReason(g, o, len(bundles[i]), given)
		if i == 0 || whole.Code == model.Impossible {
			whole.Code = reason.Code
		}
		messages[i] = phrase.Choice(i, len(g.Options)) + ": " + reason.Message
	}
	whole.Message = phrase.List(messages)
	return whole
}

// optionReason explains why one choice of a gang cannot be served.
func (w *Writer) optionReason(g *fleet.Gang, o fleet.Option, bundles int, given []int64) model.Reason {
	reason := w.UnmetReason(o.Items, given, g.TopologyLabel)
	if reason.Code == model.Impossible {
		if g.Strategy == raydemand.StrictPack && bundles > 1 {
			reason.Message = "all bundles on one node: " + reason.Message
		}
		return reason
	}
	if g.TopologyLabel != "" {
		return w.topologyReason(g, o, bundles, given, reason)
	}
	switch {
	case g.Strategy == raydemand.StrictSpread:
		reason.Message = fmt.Sprintf("needs %d different nodes at once: %s", bundles, reason.Message)
	case bundles > 1:
		reason.Message = fmt.Sprintf("needs all %d bundles at once: %s", bundles, reason.Message)
	}
	return reason
}

// possibleWithin reports whether some domain has, for each bundle of a choice, a group or a node that could ever hold
// it.
func (w *Writer) possibleWithin(o fleet.Option, domains []fleet.Domain) bool {
	holds := func(it *vector.Item, within fleet.Domain) bool {
		return slices.ContainsFunc(
			w.Groups,
			func(g fleet.Group) bool {
				return within.Admits(g.Shape.Labels) && it.Suits(g.Shape) && !g.Hopeless()
			},
		) ||
			slices.ContainsFunc(
				w.Base,
				func(l placing.NodeClass) bool { return within.Admits(l.Shape.Labels) && it.Suits(l.Shape) },
			)
	}
	return slices.ContainsFunc(domains, func(within fleet.Domain) bool {
		return !slices.ContainsFunc(o.Items, func(it *vector.Item) bool { return !holds(it, within) })
	})
}
