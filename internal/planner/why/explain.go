package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Explain plans the snapshot and answers one question about the plan. It returns ErrBrokenOff soon after stop is
// closed; a nil stop is never closed. It also returns ErrQuestion, and *UnknownError.
func Explain(
	stop <-chan struct{}, s model.Snapshot, policy model.Policy, q model.Question,
) (e model.Explanation, err error) {
	if !place.UnlessBrokenOff(func() { e, err = answer(stop, &s, policy, q) }) {
		return model.Explanation{}, model.ErrBrokenOff
	}
	return e, err
}

// mostDetails bounds the details of an answer. Nobody reads a detail for each of thousands of shapes and a hundred
// groups.
const mostDetails = 1000

func answer(
	stop <-chan struct{}, s *model.Snapshot, policy model.Policy, q model.Question,
) (e model.Explanation, err error) {
	asked := []bool{q.Demand != nil, q.AskedGang != nil, q.Group != "", q.Pod != "", q.Gang != "", q.Request != ""}
	if len(slices.DeleteFunc(asked, func(set bool) bool { return !set })) != 1 {
		return e, model.ErrQuestion
	}
	before := "" // what is assumed
	switch about := q.About(s); {
	case q.Demand != nil:
		before = addDemand(s, q.Demand)
	case q.AskedGang != nil:
		before = addGang(s, q.AskedGang)
	case !slices.Contains(about.Known, about.Name) && (q.Pod == "" || s.Head == nil || s.Head.Pod != q.Pod):
		about.Known = q.Known(s)
		return e, &about
	}
	d := newDecision(place.Decide(stop, s, policy))
	switch {
	case q.Demand != nil:
		e = d.explainDemand(q.Demand)
	case q.AskedGang != nil:
		e = d.explainGang(func(g *place.Gang) bool { return place.AsksAs(g.Gang, q.AskedGang) })
	case q.Group != "":
		e = d.explainGroup(q.Group)
	case q.Pod != "":
		e = d.explainPod(s, q.Pod)
	case q.Gang != "":
		e = d.explainGang(func(g *place.Gang) bool { return g.ID == q.Gang })
	case q.Request == model.PlainRequest && !slices.ContainsFunc(s.OwnedRequests, named(q.Request)):
		e = d.explainPlain()
	default:
		e = d.explainOwned(s.OwnedRequests[slices.IndexFunc(s.OwnedRequests, named(q.Request))])
	}
	e.Message = before + e.Message
	return cutToMost(e), nil
}

func named(id string) func(raydemand.Owned) bool {
	return func(o raydemand.Owned) bool { return o.ID == id }
}

func cutToMost(e model.Explanation) model.Explanation {
	if n := len(e.Details); n > mostDetails {
		e.Details = e.Details[:mostDetails]
		e.Message += fmt.Sprintf("; details cover the first %d of %d", mostDetails, n)
	}
	return e
}

// sameRequest returns a function that finds the requests with these resources, and with these selectors if r has any.
func sameRequest(r *raydemand.Request) func(raydemand.Request) bool {
	return func(other raydemand.Request) bool {
		return other.Bundle.Equal(r.Bundle) && other.Slice.Equal(r.Slice) &&
			(len(r.Selectors) == 0 || slices.EqualFunc(other.Selectors, r.Selectors,
				func(a, b raydemand.Selector) bool { return a.String() == b.String() }))
	}
}

// addDemand adds as many of a request to a snapshot as it counts beyond those that wait, and says so.
func addDemand(s *model.Snapshot, r *raydemand.Request) string {
	var waiting int64
	added, same, were := *r, sameRequest(r), "one"
	for _, other := range s.Requests {
		if same(other) {
			waiting = min(waiting+max(other.Count, 0), place.MaxCount)
		}
	}
	count := max(r.Count, 1)
	if added.Count = count - waiting; added.Count <= 0 {
		return ""
	}
	s.Requests = append(slices.Clone(s.Requests), added)
	if waiting > 0 {
		return fmt.Sprintf("%d in the snapshot; with %d: ", waiting, count)
	}
	if count > 1 {
		were = fmt.Sprint(count)
	}
	return fmt.Sprintf("no task in the snapshot is waiting for it; if %s were: ", were)
}

// addGang adds a gang to a snapshot unless one that asks for the same waits.
func addGang(s *model.Snapshot, asked *raydemand.Gang) string {
	for i := range s.Gangs {
		if place.AsksAs(&s.Gangs[i], asked) {
			return ""
		}
	}
	added := *asked
	added.ID = ""
	s.Gangs = append(slices.Clone(s.Gangs), added)
	return "no gang in the snapshot is waiting for it; if one were: "
}

// explainDemand explains all pending requests that are the same as one, each of its choices of labels, each group, and
// what else asks for the same bundle.
func (d *decision) explainDemand(r *raydemand.Request) model.Explanation {
	e := model.Explanation{About: "demand " + model.Describe(*r), Details: []model.Detail{}}
	var all model.DemandSummary
	var first *place.Item
	same, why := sameRequest(r), ""
	for i, it := range d.Requests {
		if !same(it.Asked()) {
			continue
		}
		if first == nil {
			first = it
		}
		all.Kind, all.Resources = model.KindRequest, it.Request.Bundle
		all.Selectors = slices.Concat(all.Selectors, it.Asked().Selectors)
		all.Join(d.summary(model.KindRequest, it, d.out.Unserved[i]))
		why = cmp.Or(why, d.why[it].Message)
	}
	e.Reason = d.tally(&all, why)
	if first.HasChoices() {
		for i, selector := range first.Request.Selectors {
			e.Add(model.Choice(i, first.Alternatives)+", "+cmp.Or(selector.String(), "any node"), d.choice(first, i))
		}
	}
	for i := range d.Groups {
		e.Add("group "+d.Groups[i].Name, d.groupVerdict(i, first))
		var room, there int
		for _, n := range d.staying(i) {
			if n.State != model.Pending {
				there++
				if first.Rank[n.Shape.Labels] != place.NoMatch && n.Free.Times(first.Need, 1) == 1 {
					room++
				}
			}
		}
		if there > 0 {
			e.Add("pods of group "+d.Groups[i].Name, roomNow.with(room, there))
		}
	}
	d.addElsewhere(&e, r.Bundle)
	return e
}

// choice explains one of a request's selectors: pods are launched for it, or why no group serves it. The code is that
// of the group that comes closest.
func (d *decision) choice(it *place.Item, i int) model.Reason {
	var launched int64
	var names []string
	for _, e := range d.out.Log {
		if e.Item == it && it.Rank[d.Groups[e.Group].Shape.Labels] == i {
			launched += e.Count
			names = append(names, "group "+d.Groups[e.Group].Name)
		}
	}
	if launched > 0 {
		slices.Sort(names)
		return placedOn.with(launched, joined(slices.Compact(names)))
	}
	request := it.Request
	request.Selectors = request.Selectors[i : i+1]
	alone := d.NewItem(request, it.Need, "")
	groups := d.consider([]*place.Item{alone})
	for _, v := range groups {
		if v.misses == 0 && !said(d.limit(v.group)) {
			return groupNot.with(d.Groups[v.group].Name)
		}
	}
	if len(groups) == 0 {
		return model.Reason{Code: model.CodeNotNeeded}
	}
	return model.Reason{Code: groups[0].Code, Message: d.sentences(groups)}
}

// groupVerdict explains what new pods of a group do for an item.
func (d *decision) groupVerdict(i int, it *place.Item) model.Reason {
	d.BreakOff()
	var own, others int64
	by := -1
	for _, e := range d.out.Log {
		switch {
		case e.Item != it:
		case e.Group == i:
			own += e.Count
		default:
			others, by = others+e.Count, e.Group
		}
	}
	if own > 0 {
		choice := ""
		if it.HasChoices() {
			choice = ", " + model.Choice(it.Rank[d.Groups[i].Shape.Labels], it.Alternatives)
		}
		return serves.with(model.Pods(d.given[i]), model.OneOrMany(d.given[i], "serves", "serve"), own, choice)
	}
	obstacle := d.obstacle(i, it)
	switch {
	case said(obstacle):
		return obstacle
	case others > 0:
		return d.preferred(candidate{it, by}, i)
	case d.waitsStill(it):
		return notInFull.with("it")
	case d.boundOf(i).room < it.Request.Count && slices.ContainsFunc(d.out.Runs, func(run place.Run) bool {
		return run.Option > it.Option && slices.Contains(run.Gangs, it.Gang)
	}):
		return after("the gang uses a later choice: ", d.boundOf(i).Reason)
	}
	return noneNeeded.with()
}

// waitsStill reports whether some of an item, or of its gang or call, is not served.
func (d *decision) waitsStill(it *place.Item) bool {
	_, gangWaits := d.why[it.Gang]
	return said(d.why[it]) || gangWaits
}

// addItems explains how each group relates to each item.
func (d *decision) addItems(e *model.Explanation, prefix string, items ...*place.Item) {
	for _, it := range items {
		about := strings.TrimPrefix(prefix+", "+counted(it), ", ")
		for i := range d.Groups {
			e.Add(about+": group "+d.Groups[i].Name, d.groupVerdict(i, it))
		}
	}
}

func counted(it *place.Item) string {
	return fmt.Sprintf("%d × %s", it.Request.Count, model.Describe(it.Asked()))
}

// mostElsewhere is how many gangs are listed one by one.
const mostElsewhere = 10

// addElsewhere lists the gangs and the calls of request_resources that ask for the same bundle as a request.
func (d *decision) addElsewhere(e *model.Explanation, b raydemand.Bundle) {
	count := 0
	for _, g := range d.Gangs {
		if asks := asksFor(g, b); asks != "" {
			if count++; count <= mostElsewhere {
				e.Add(aboutGang(g), after(asks+", in addition to the tasks; ", d.gangTally(g)))
			}
		}
	}
	if count > mostElsewhere {
		e.Add("gangs", moreGangs.with(count-mostElsewhere))
	}
	for _, c := range d.claimed {
		if c.item.Request.Bundle.Equal(b) {
			s := d.summary(model.KindRequestResources, c.item, c.left)
			e.Add(c.of.Purpose, d.tally(&s, d.why[c.item].Message))
		}
	}
}

func aboutGang(g *place.Gang) string { return strings.TrimSpace("gang " + g.ID) }

// gangTally explains what becomes of a gang.
func (d *decision) gangTally(g *place.Gang) model.Reason {
	s := d.gangSummary(g)
	return d.tally(&s, d.why[g].Message)
}

// asksFor describes how a gang asks for a bundle: how many of its bundles are equal, and in which choice; or all of
// them together if they share a node. It returns an empty string if the gang does not ask for the bundle.
func asksFor(g *place.Gang, b raydemand.Bundle) string {
	all := g.Alternatives()
	for k, bundles := range all {
		n, whole := 0, raydemand.Bundle{}
		for _, own := range bundles {
			whole.Add(own)
			if own.Equal(b) {
				n++
			}
		}
		of := "its bundles"
		if k > 0 {
			of = "the bundles of its " + model.Choice(k, len(all))
		}
		switch {
		case g.Strategy == raydemand.StrictPack && whole.Equal(b) && len(bundles) > 1:
			return of + ", which share a node, ask for this together"
		case n > 0:
			return fmt.Sprintf("%d of %s ask for this", n, of)
		}
	}
	return ""
}

// explainGang explains the first of some gangs, and how each group relates to each of its bundles.
func (d *decision) explainGang(wanted func(g *place.Gang) bool) (e model.Explanation) {
	e.Details = []model.Detail{}
	if at := slices.IndexFunc(d.Gangs, wanted); at >= 0 {
		g := d.Gangs[at]
		e.About, e.Reason = aboutGang(g), d.gangTally(g)
		for k, o := range g.Options {
			d.addItems(&e, model.Choice(k, len(g.Options)), o...)
		}
	}
	return e
}

// explainGroup explains one group's size: its reasons, its pods, and how each demand relates to it.
func (d *decision) explainGroup(name string) model.Explanation {
	i := slices.IndexFunc(d.Groups, func(g place.Group) bool { return g.Name == name })
	row := d.row(i)
	e := model.Explanation{About: "group " + name, Reason: row.Reasons[0]}
	e.Add("size", model.Reason{Code: e.Code, Message: fmt.Sprintf("%s, each %s", row.Size(),
		model.Describe(raydemand.Request{Bundle: d.Groups[i].Resources}))})
	for _, reason := range row.Reasons[1:] {
		e.Add("pods", reason)
	}
	d.addStates(&e, i)
	add := func(about string, items []*place.Item) {
		for _, it := range items {
			e.Add(about+" "+counted(it), d.groupVerdict(i, it))
		}
	}
	add("demand", d.Requests)
	for _, gang := range d.Gangs {
		for k, o := range gang.Options {
			add(aboutGang(gang)+strings.TrimSuffix(", "+model.Choice(k, len(gang.Options))+":", ", :"), o)
		}
	}
	for _, c := range d.Claims {
		about := c.Purpose
		if about == place.OverREST {
			about = "requests over REST" // includes the requests of owners
		}
		add(about, c.Items)
	}
	return e
}

// explainPod explains why one pod stays or stops.
func (d *decision) explainPod(s *model.Snapshot, name string) model.Explanation {
	e := model.Explanation{About: "pod " + name, Details: []model.Detail{}}
	var going *departure.Notice
	if at := slices.IndexFunc(d.Nodes, func(n place.Node) bool { return n.Pod == name }); at >= 0 {
		e.Reason, going = d.podReason(at), d.Nodes[at].Going
		d.addPod(&e, at)
	} else { // the fleet leaves out nodes that do not count
		n := &s.Nodes[slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Pod == name })]
		switch n.State {
		case model.Leaving:
			e.Reason, going = podLeaving.with(), n.Going
			if len(n.Activity) > 0 {
				addActivity(&e, Busy(n))
			}
		case model.AllocationTimeout:
			e.Reason = podGivenUp.with()
		default:
			e.Reason = podRemoved.with(n.Group)
		}
	}
	if going != nil {
		e.Message = going.Text("") + "; " + e.Message
	}
	return e
}

// arrival continues a sentence about a starting worker: where it is, since when, and when it is expected.
func (d *decision) arrival(a *arrival.State) string {
	if a == nil {
		return ""
	}
	text := "; " + a.Stage.Text() + d.lasting(", for ", a.Since)
	if a.Message != "" {
		text += ": " + a.Message
	}
	expected := model.Expected(a.ExpectedAt, a.LateAt, d.TakenAt)
	return text + "; " + cmp.Or(expected, "when it is expected is not known yet")
}

// arrivals continues a sentence about a group's pods on their way: how many have reached each stage, and when the last
// of them are expected.
func (d *decision) arrivals(group int) (text string) {
	count := map[arrival.Stage]int{}
	var last arrival.State
	for i := range d.Nodes {
		a := d.Nodes[i].Arrival
		if d.Nodes[i].GroupIndex != group || d.Nodes[i].State != model.Pending || a == nil {
			continue
		}
		count[a.Stage]++
		if a.ExpectedAt.After(last.ExpectedAt) {
			last = *a
		}
	}
	separator := ": "
	for _, stage := range arrival.Stages {
		if n := count[stage]; n > 0 {
			text += fmt.Sprintf("%s%d %s", separator, n, stage)
			separator = ", "
		}
	}
	if expected := model.Expected(last.ExpectedAt, last.LateAt, d.TakenAt); expected != "" {
		text += "; the last is " + expected
	}
	return text
}

// explainOwned explains a request as its status does, and why each group serves its bundles or does not.
func (d *decision) explainOwned(owned raydemand.Owned) model.Explanation {
	e := model.Explanation{About: "request " + owned.ID, Details: []model.Detail{}}
	for _, row := range d.requests {
		if row.ID != owned.ID || row.Plain {
			continue
		}
		e.Reason = after(fmt.Sprintf("%s: %d of %d bundles served, %d waiting: ", row.State, row.Served, row.Asked,
			row.Waiting), row.Reason)
		for _, g := range row.Groups {
			e.Add("pods of group "+g.Name, podsServe.with(g.Pods, g.Waiting))
		}
	}
	items := d.Items(owned.Requests)
	for i, it := range items { // the plan serves it together with equal bundles of others
		for _, c := range d.claimed {
			if c.item.Key == it.Key {
				items[i] = c.item
			}
		}
	}
	d.addItems(&e, "", items...)
	return e
}

// explainPlain explains the request without an owner. Over REST, it is planned together with the requests of owners.
func (d *decision) explainPlain() model.Explanation {
	var all model.DemandSummary
	var why []string
	e := model.Explanation{About: "request " + model.PlainRequest, Details: []model.Detail{}}
	for _, c := range d.claimed {
		all.Join(d.summary(model.KindRequestResources, c.item, c.left))
		if reason := d.why[c.item]; said(reason) {
			why = append(why, c.of.Purpose+": "+reason.Message)
		}
		d.addItems(&e, c.of.Purpose, c.item)
	}
	e.Reason = d.tally(&all, model.List(why))
	return e
}
