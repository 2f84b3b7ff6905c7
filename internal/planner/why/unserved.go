package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// unmetReason explains why items are not served together: which groups were considered, and why none was chosen. The
// codes are those of model.UnmetRequest.
func (d *decision) unmetReason(items ...*place.Item) model.Reason {
	for _, it := range items {
		switch {
		case it.Deferred:
			return manyShapes.with(d.MostShapes)
		case !d.Possible(it):
			return missed.with(d.nearestMiss(it))
		case !d.Certain(it):
			if reason := d.openReason(nil, it); said(reason) {
				return reason
			}
		}
	}
	groups := d.consider(items)
	if code := d.codeOf(groups); code != "" {
		return model.Reason{Code: code, Message: d.sentences(groups)}
	}
	return cmp.Or(d.openReason(nil, items...), onlyNodes.with())
}

// gangReason explains, choice by choice, why a gang is not served. The code is that of the first choice that is
// possible at all.
func (d *decision) gangReason(g *place.Gang) (whole model.Reason) {
	if g.Deferred {
		return manyShapes.with(d.MostShapes)
	}
	var messages []string
	for i, bundles := range g.Alternatives() {
		reason := d.choiceReason(g, g.Options[i], len(bundles))
		if i == 0 || whole.Code == model.Impossible {
			whole.Code = reason.Code
		}
		messages = append(messages, strings.TrimPrefix(model.Choice(i, len(g.Options))+": ", ": ")+reason.Message)
	}
	whole.Message = model.List(messages)
	return whole
}

func (d *decision) choiceReason(g *place.Gang, o []*place.Item, bundles int) model.Reason {
	reason := d.unmetReason(o...)
	switch {
	case reason.Code == model.Impossible && g.Strategy == raydemand.StrictPack && bundles > 1:
		return after("all bundles on one node: ", reason)
	case reason.Code == model.Impossible:
		return reason
	case g.TopologyLabel != "":
		return d.topologyReason(g, o, bundles, reason)
	case g.Strategy == raydemand.StrictSpread:
		return after(fmt.Sprintf("needs %d different nodes at once: ", bundles), reason)
	case bundles > 1:
		return after(fmt.Sprintf("needs all %d bundles at once: ", bundles), reason)
	}
	return reason
}

// topologyReason explains why a choice of a gang is not served although each of its bundles could be, if they did not
// have to share a label. Bundles that the gang already holds make nothing impossible: if they were lost, the gang could
// be placed elsewhere.
func (d *decision) topologyReason(g *place.Gang, o []*place.Item, bundles int, reason model.Reason) model.Reason {
	label, open := g.TopologyLabel, d.OpenDomains(g)
	all := d.Topology(label).Domains(func(int) bool { return true })
	if awaited := d.openReason(g, o...); awaited.Code == model.CodeTrying ||
		said(awaited) && !d.possibleWithin(o, open) {
		return awaited
	}
	groups := d.consider(o, open...)
	switch {
	case len(all) == 0:
		return nowhere.with(label)
	case !d.possibleWithin(o, all):
		return noValue.with(label, d.sentences(groups))
	case len(open) == 0:
		return heldUnlike.with(label)
	case g.Held:
		held := heldElsewhere.with(d.valuesOf(open, label), bundles, d.sentences(groups))
		held.Code = cmp.Or(d.codeOf(groups), held.Code)
		return held
	}
	return after(fmt.Sprintf("no value of label %s has room for all %d bundles: ", label, bundles), reason)
}

// possibleWithin reports whether some domain has, for each bundle of a choice, a group or a node that could ever hold
// it.
func (d *decision) possibleWithin(o []*place.Item, domains []place.Domain) bool {
	return slices.ContainsFunc(domains, func(within place.Domain) bool {
		fits := func(it *place.Item, s *place.Shape) bool { return within.Admits(s.Labels) && it.Suits(s) }
		return !slices.ContainsFunc(o, func(it *place.Item) bool {
			group := func(g place.Group) bool { return fits(it, g.Shape) && !g.Hopeless() }
			return !slices.ContainsFunc(d.Groups, group) &&
				!slices.ContainsFunc(d.Base, func(l place.NodeClass) bool { return fits(it, l.Shape) })
		})
	})
}

// valuesOf returns domains as text: rack=1.
func (d *decision) valuesOf(domains []place.Domain, label string) string {
	values := make([]string, len(domains))
	for i, domain := range domains {
		values[i] = label + "=" + d.Sets[slices.Index(domain.Of, domain.Value)][label]
	}
	return joined(values)
}

// elsewhereBound explains why a gang with a topology label cannot be placed where a group's pods are.
func (d *decision) elsewhereBound(it *place.Item, i int) model.Reason {
	gang, g := it.Gang, &d.Groups[i]
	if gang == nil || gang.TopologyLabel == "" {
		return model.Reason{}
	}
	label, option := gang.TopologyLabel, gang.Options[it.Option]
	at := slices.IndexFunc(d.out.Runs, func(r place.Run) bool { return slices.Contains(r.Gangs, gang) })
	own := place.Domain{Topology: d.Topology(label), Value: d.Topology(label).Of[g.Shape.Labels]}
	switch {
	case !g.Carries(label):
		return unlabelled.with(label)
	case at < 0 || d.out.Runs[at].Within == own:
		return model.Reason{}
	case gang.Held:
		return othersOn.with(d.valuesOf([]place.Domain{d.out.Runs[at].Within}, label))
	case !d.TooSmall(option, own) &&
		(gang.Strategy != raydemand.StrictSpread || d.boundOf(i).room >= place.BundlesOf(option)):
		return model.Reason{}
	}
	unlaunched := &decision{Search: d.Search, given: make([]int64, len(d.Groups)), bounds: map[int]bound{}}
	return after(fmt.Sprintf("%s has no room for the gang's %s: ", d.valuesOf([]place.Domain{own}, label),
		model.Plural(int64(len(gang.Alternatives()[it.Option])), "bundle")), unlaunched.boundOf(i).Reason)
}

// codeOf returns the code of demand by the groups that could serve it, or "" if no pod of theirs will ever run.
func (d *decision) codeOf(groups []verdict) string {
	able, shut := false, true
	codes := map[string]bool{}
	for _, v := range groups {
		g := &d.Groups[v.group]
		if v.misses > 0 || g.Hopeless() {
			continue
		}
		able, shut = true, shut && g.Blocked == model.CodeClosed && !g.Excluded()
		codes[v.Code] = true
		if v.Code == model.CodeCoolingDown &&
			g.Current+d.given[v.group]+g.Hosts <= g.MaxPods && d.Spare(d.given) >= g.Hosts {
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
	case shut:
		return model.Closed
	}
	return model.Capped
}

// nearestMiss explains what the closest group lacks, or what all lack.
func (d *decision) nearestMiss(it *place.Item) string {
	groups, asked := d.consider([]*place.Item{it}), model.Describe(it.Asked())
	matches := func(g place.Group) bool { return landing.FirstMatch(it.Request.Selectors, g.Labels) != place.NoMatch }
	switch {
	case len(groups) == 0:
		return fmt.Sprintf("needs %s; there is no worker group", asked)
	case groups[0].misses == 0:
		return d.sentences(groups)
	case slices.ContainsFunc(d.Groups, matches):
		if text := d.missedAlone(it); text != "" {
			return text
		}
	}
	return fmt.Sprintf("no group has all of %s: %s", asked, d.sentences(groups))
}

// missedAlone names a resource of which no group has enough, regardless of the others.
func (d *decision) missedAlone(it *place.Item) string {
	for _, t := range it.Need {
		best := slices.MaxFunc(d.Groups, func(a, b place.Group) int {
			return cmp.Compare(a.Shape.Total[t.Resource], b.Shape.Total[t.Resource])
		})
		needs, has := d.lack(t, best.Shape.Total)
		switch {
		case needs == "":
			continue
		case best.Shape.Total[t.Resource] == 0:
			return needs + "; no group has any" + d.otherCase(d.Names[t.Resource])
		}
		return fmt.Sprintf("%s; the largest group has %s (%s)", needs, has, best.Name)
	}
	return ""
}

// lack says how far an amount is missing: needs 2 GPU, 1; two empty texts if it is not.
func (d *decision) lack(t place.Term, total place.Vector) (needs, has string) {
	name, there := d.Names[t.Resource], total[t.Resource]
	if needs, has = model.Pair(name, t.Amount, there); there < t.Amount {
		return fmt.Sprintf("needs %s %s", needs, name), has
	}
	if total.Has(t) {
		return "", ""
	}
	return needsCards(&t.Pieces.Pieces, name), there.String()
}

// needsCards returns, for example, needs GPU 0.6 + 0.6 + 0.6, each part on one card.
func needsCards(p *raydemand.Pieces, name string) string {
	if p.Refused > 0 {
		return fmt.Sprintf("needs %s %s, and Ray refuses amounts of %s above 1 that are not whole",
			p.Refused, name, name)
	}
	var all []string
	if p.Whole > 0 {
		all = append(all, p.Whole.String())
	}
	for _, part := range p.Parts {
		all = append(all, part.String())
	}
	const most = 8
	if len(all) > most {
		all = append(all[:most], "…")
	}
	return fmt.Sprintf("needs %s %s, each part on one card", name, strings.Join(all, " + "))
}

// otherCase names a resource of some group that differs from a name in case alone, such as Ray's CPU and GPU.
func (d *decision) otherCase(name string) string {
	for i := range d.Groups {
		for _, other := range d.Groups[i].Resources.Names() {
			if strings.EqualFold(name, other) && d.Groups[i].Resources[other] > 0 {
				return fmt.Sprintf("; did you mean %s? Resource names are case-sensitive", other)
			}
		}
	}
	return ""
}

// verdict is why a group does not serve some items, and by how many of its properties.
type verdict struct {
	model.Reason
	group, misses int
}

// consider finds for each group why it does not serve the items: first the groups whose pods could serve them, in
// order, then the others, the nearest miss first. open lists the values of the gang's topology label that are possible,
// if not all of them are.
func (d *decision) consider(items []*place.Item, open ...place.Domain) []verdict {
	all := make([]verdict, len(d.Groups))
	for i := range all {
		reason, misses := d.miss(i, items, open)
		if misses == 0 {
			reason = hasRoom.with()
			switch bound := d.boundOf(i); {
			case bound.room < place.BundlesOf(items):
				reason = bound.Reason
			case len(items) == 1 && items[0].Gang == nil: // a group with proven room would serve it
				reason = cmp.Or(d.triedReason(i), reason)
			}
		}
		all[i] = verdict{reason, i, misses}
	}
	slices.SortStableFunc(all, func(a, b verdict) int { return cmp.Compare(a.misses, b.misses) })
	return all
}

// miss explains, with numbers, why pods of a group could not serve any of the items even if there was room for them:
// what they may announce, the amounts that they lack, or the label that does not match. It counts their properties that
// do not match; 0 if the pods could serve the items.
func (d *decision) miss(i int, items []*place.Item, open []place.Domain) (reason model.Reason, misses int) {
	g, it, topology := &d.Groups[i], items[0], ""
	if at := slices.IndexFunc(items, func(it *place.Item) bool { return it.Suits(g.Shape) }); at >= 0 {
		it = items[at]
	}
	if it.Gang != nil {
		topology = it.Gang.TopologyLabel
	}
	reason = cmp.Or(d.awaitedReason(i, it, it.Gang), d.mismatch(it, g.Shape, g.Labels))
	switch {
	case reason.Code == model.CodeSliceTooSmall:
		reason.Message += d.overDeclared(i, it)
	case said(reason):
	case !g.Carries(topology):
		reason = unlabelled.with(topology)
	case len(open) > 0 && !slices.ContainsFunc(open, func(in place.Domain) bool { return in.Admits(g.Shape.Labels) }):
		reason = labelIs.with(topology, g.Labels[topology])
	case !it.Suits(g.Shape):
		reason = unlike.with("its first host does not match")
	default:
		return reason, 0
	}
	return reason, max(d.misses(it, g.Shape), 1)
}

// obstacle explains why one more replica of a group would not serve an item: what it lacks, or the limit that the group
// has reached; no reason if there is no obstacle.
func (d *decision) obstacle(i int, it *place.Item) model.Reason {
	if reason, misses := d.miss(i, []*place.Item{it}, nil); misses > 0 {
		return reason
	}
	return d.limit(i)
}

// namesGroup lists the codes whose sentences name the group themselves.
var namesGroup = []string{model.CodeAtMax, model.CodeMaxWorkers, model.CodePoolCeiling, model.CodePoolPromised,
	model.CodeQuota, model.CodeScaleGate, model.CodeConservative, model.CodeInFlight}

// sentences writes one sentence for each group.
func (d *decision) sentences(groups []verdict) string {
	all := make([]string, len(groups))
	for k, v := range groups {
		if all[k] = v.Message; !slices.Contains(namesGroup, v.Code) {
			all[k] = "group " + d.Groups[v.group].Name + ": " + v.Message
		}
	}
	return model.List(all)
}

// mismatch lists what a shape lacks for an item: amounts, then labels, then properties of its GPUs. The code is that of
// the first.
func (d *decision) mismatch(it *place.Item, s *place.Shape, labels map[string]string) model.Reason {
	var lacks []string
	for _, t := range it.Need {
		if needs, has := d.lack(t, s.Total); needs != "" {
			lacks = append(lacks, needs+", has "+has)
		}
	}
	unlabelled, slice := "", d.sliceMiss(it, s)
	if it.Rank[s.Labels] == place.NoMatch && landing.FirstMatch(it.Request.Selectors, labels) == place.NoMatch {
		unlabelled = labelMiss(it.Request.Selectors, labels)
	}
	switch {
	case len(lacks) > 0:
		return tooSmall.with(model.Join(joined(lacks), unlabelled, slice.Message))
	case unlabelled != "":
		return unlike.with(model.Join(unlabelled, slice.Message))
	}
	return slice
}

// misses counts the reasons why a shape cannot serve an item.
func (d *decision) misses(it *place.Item, s *place.Shape) (n int) {
	if it.Rank[s.Labels] == place.NoMatch {
		n = 1
	}
	for _, t := range it.Need {
		if !s.Total.Has(t) {
			n++
		}
	}
	return n
}

// labelMiss names, for each choice of labels, the first label that does not match: label region is eu, must be us.
func labelMiss(selectors []raydemand.Selector, labels map[string]string) string {
	var misses []string
	for i, selector := range selectors {
		for _, c := range selector {
			if (raydemand.Selector{c}).Matches(labels) {
				continue
			}
			is := "missing"
			if value, present := labels[c.Key]; present {
				is = value
			}
			miss := fmt.Sprintf("label %s is %s, must be %s", c.Key, is, c.Expression())
			if len(selectors) > 1 {
				miss = fmt.Sprintf("choice %d: %s", i+1, miss)
			}
			misses = append(misses, miss)
			break
		}
	}
	return model.List(misses)
}

// awaitedReason explains why a group may serve an item or not, by what its new pods announce; no reason if their
// announcements make no difference.
func (d *decision) awaitedReason(i int, it *place.Item, gang *place.Gang) model.Reason {
	wants := d.Wants(i, it, gang)
	if len(wants) == 0 {
		return model.Reason{}
	}
	g, text := &d.Groups[i], unknownIn(wants)
	for _, a := range wants {
		switch {
		case d.Undecided(a, gang, g):
		case a.PerReplica:
			return replicaSmall.with(text)
		default:
			return undecided.with(text, shown(a))
		}
	}
	limit := d.limit(i)
	switch {
	case d.TrialOf(i) != nil:
		return trying.with(text, model.Pods(g.Hosts))
	case d.Coming(i, d.given, wants, d.out):
		return comingShow.with(text)
	case said(limit):
		return after(text+"; ", limit)
	case d.Unused(i, model.Idle, wants, d.out):
		return idleDoNot.with(text)
	}
	return knownFirst.with(text)
}

// unknownIn names what is not known about the announcements of new pods, and why.
func unknownIn(awaited []landing.Awaited) string {
	parts := make([]string, len(awaited))
	for i, a := range awaited {
		parts[i] = fmt.Sprintf("it is unknown whether its pods will have %s: %s", a, a.Why)
		switch {
		case a.PerReplica:
			parts[i] = fmt.Sprintf("each new replica has its own value of the gang's topology label %s: %s",
				a.Name, a.Why)
		case a.Must.Key == "":
			parts[i] = fmt.Sprintf("it is unknown which value of the gang's topology label %s its pods will have: %s",
				a.Name, a.Why)
		}
	}
	return strings.Join(parts, "; ")
}

// shown lists what workers of a group have announced.
func shown(a landing.Awaited) string {
	if len(a.Shown) == 0 {
		return ""
	}
	values := make([]string, len(a.Shown))
	for i, value := range a.Shown {
		values[i] = cmp.Or(value, "none")
	}
	return "its workers have shown " + strings.Join(values, " and ") + "; "
}

// openReason explains that only announcements that are unknown decide whether an item, or an item of a gang, can be
// served; no reason if no group is open for it.
func (d *decision) openReason(gang *place.Gang, items ...*place.Item) (all model.Reason) {
	var parts []string
	for i := range d.Groups {
		for _, it := range items {
			reason := d.awaitedReason(i, it, gang)
			if !said(reason) {
				continue
			}
			if all.Code = cmp.Or(all.Code, model.Capped); reason.Code == model.CodeTrying {
				all.Code = model.CodeTrying
			}
			parts = append(parts, "group "+d.Groups[i].Name+": "+reason.Message)
			break
		}
	}
	all.Message = model.List(parts)
	return all
}
