package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// mostDetails bounds the details of an answer. Nobody reads a detail for each of thousands of shapes and a hundred
// groups.
const mostDetails = 1000

// Explain plans the snapshot and answers one question about the plan. It returns ErrQuestion, or an *UnknownError.
func Explain(s *model.Snapshot, policy model.Policy, q model.Question) (e model.Explanation, err error) {
	asked := []bool{q.Demand != nil, q.AskedGang != nil, q.Group != "", q.Pod != "", q.Gang != "", q.Request != ""}
	if len(slices.DeleteFunc(asked, func(set bool) bool { return !set })) != 1 {
		return e, model.ErrQuestion
	}
	before := "" // what is assumed
	var same func(raydemand.Request) bool
	owned := slices.IndexFunc(s.OwnedRequests, func(o raydemand.Owned) bool { return o.ID == q.Request })
	switch about := q.About(s); {
	case q.Demand != nil:
		same = likeness(s.Requests, q.Demand)
		before = addDemand(s, q.Demand, same)
	case q.AskedGang != nil:
		before = addGang(s, q.AskedGang)
	case !slices.Contains(about.Known, about.Name) && (q.Pod == "" || s.Head == nil || s.Head.Pod != q.Pod):
		about.Known = q.Known(s)
		return e, &about
	}
	d := newDecision(place.Decide(s, policy))
	e.Details = []model.Detail{}
	switch {
	case q.Demand != nil:
		d.explainDemand(&e, q.Demand, same)
	case q.AskedGang != nil:
		d.explainGang(&e, func(g *place.Gang) bool { return g.AsksAs(q.AskedGang) })
	case q.Group != "":
		d.explainGroup(&e, q.Group)
	case q.Pod != "":
		d.explainPod(&e, s, q.Pod)
	case q.Gang != "":
		d.explainGang(&e, func(g *place.Gang) bool { return g.ID == q.Gang })
	case owned >= 0:
		d.explainOwned(&e, s.OwnedRequests[owned])
	default:
		d.explainPlain(&e)
	}
	e.Message = before + e.Message
	if n := len(e.Details); n > mostDetails {
		e.Details = e.Details[:mostDetails]
		e.Message += fmt.Sprintf("; details cover the first %d of %d", mostDetails, n)
	}
	return e, nil
}

// likeness returns a function that finds the requests with the resources and selectors of r. If r has no selectors, and
// no request without any has these resources, it finds those with any selectors.
func likeness(requests []raydemand.Request, r *raydemand.Request) func(raydemand.Request) bool {
	text := func(r raydemand.Request) string { return fmt.Sprint(r.Selectors) } // one without terms is like none
	like := func(other raydemand.Request) bool { return other.Bundle.Equal(r.Bundle) && other.Slice.Equal(r.Slice) }
	same := func(other raydemand.Request) bool { return like(other) && text(other) == text(*r) }
	if text(*r) == "[]" && !slices.ContainsFunc(requests, same) {
		return like
	}
	return same
}

// addDemand adds as many of a request to a snapshot as it counts beyond the same ones that wait, and says so.
func addDemand(s *model.Snapshot, r *raydemand.Request, same func(raydemand.Request) bool) string {
	var waiting int64
	added := *r
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
	if waiting == 0 {
		return fmt.Sprintf("no task in the snapshot is waiting for it; with %d: ", count)
	}
	return fmt.Sprintf("%d in the snapshot; with %d: ", waiting, count)
}

// addGang adds a gang to a snapshot unless one that asks for the same waits.
func addGang(s *model.Snapshot, asked *raydemand.Gang) string {
	if slices.ContainsFunc(s.Gangs, func(g raydemand.Gang) bool { return g.AsksAs(asked) }) {
		return ""
	}
	added := *asked
	added.ID = ""
	s.Gangs = append(slices.Clone(s.Gangs), added)
	return "no gang in the snapshot is waiting for it; if one were: "
}

// explainDemand explains all pending requests that are the same as one, and each group.
func (d *decision) explainDemand(
	e *model.Explanation, r *raydemand.Request, same func(raydemand.Request) bool,
) {
	e.About = "demand " + model.Describe(*r)
	var all model.DemandSummary
	var first *place.Item
	why := ""
	for i, it := range d.Requests {
		if !same(it.Asked()) {
			continue
		}
		first = cmp.Or(first, it)
		all.Kind, all.Resources = model.KindRequest, it.Request.Bundle
		all.Selectors = slices.Concat(all.Selectors, it.Asked().Selectors)
		all.Join(d.summary(model.KindRequest, it, d.out.Unserved[i]))
		why = cmp.Or(why, d.why[it].Message)
	}
	e.Reason = d.tally(&all, why)
	for i := range d.Groups {
		e.Add("group "+d.Groups[i].Name, d.groupVerdict(i, first))
	}
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

func aboutGang(g *place.Gang) string { return strings.TrimSpace("gang " + g.ID) }

// gangTally explains what becomes of a gang.
func (d *decision) gangTally(g *place.Gang) model.Reason {
	s := d.gangSummary(g)
	return d.tally(&s, d.why[g].Message)
}

// explainGang explains the first of some gangs, and how each group relates to each of its bundles.
func (d *decision) explainGang(e *model.Explanation, wanted func(g *place.Gang) bool) {
	if at := slices.IndexFunc(d.Gangs, wanted); at >= 0 {
		g := d.Gangs[at]
		e.About, e.Reason = aboutGang(g), d.gangTally(g)
		for k, o := range g.Options {
			d.addItems(e, model.Choice(k, len(g.Options)), o...)
		}
	}
}

// explainGroup explains one group's size: its reasons, its pods, and how each demand relates to it.
func (d *decision) explainGroup(e *model.Explanation, name string) {
	i := slices.IndexFunc(d.Groups, func(g place.Group) bool { return g.Name == name })
	row := d.row(i)
	e.About, e.Reason = "group "+name, row.Reasons[0]
	e.Add("size", model.Reason{Code: e.Code, Message: fmt.Sprintf("%s, each %s", row.Size(),
		model.Describe(raydemand.Request{Bundle: d.Groups[i].Resources}))})
	for _, reason := range row.Reasons[1:] {
		e.Add("pods", reason)
	}
	d.addStates(e, i)
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
}

// explainPod explains why one pod stays or stops, what keeps it busy, and what is free on it.
func (d *decision) explainPod(e *model.Explanation, s *model.Snapshot, name string) {
	e.About = "pod " + name
	at := slices.IndexFunc(d.Nodes, func(n place.Node) bool { return n.Pod == name })
	var n *model.Node
	var busy []model.Reason
	if at >= 0 {
		n = d.Nodes[at].Node
	} else { // the fleet leaves out nodes that do not count
		n = &s.Nodes[slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Pod == name })]
	}
	switch {
	case at >= 0:
		if e.Reason = d.podReason(at); n.State == model.Running && d.Nodes[at].GroupIndex != place.HeadGroup {
			busy = n.Busy()[1:]
		}
	case n.State == model.Leaving:
		if e.Reason = podLeaving.with(); len(n.Activity) > 0 {
			busy = n.Busy()
		}
	case n.State == model.AllocationTimeout:
		e.Reason = podGivenUp.with()
	default:
		e.Reason = podRemoved.with(n.Group)
	}
	if n.Going != nil {
		e.Message = n.Going.Text("") + "; " + e.Message
	}
	for _, cause := range busy {
		e.Add("activity", cause)
	}
	if at < 0 || d.Nodes[at].GroupIndex == place.UnknownGroup {
		return
	}
	for r, total := range d.Named(d.Nodes[at].Shape.Total) {
		if name := d.Names[r]; total > 0 && !strings.HasPrefix(name, raydemand.ImplicitPrefix) {
			left, all := model.Pair(name, d.Nodes[at].Free[r], total)
			e.Add(name, freeOf.with(left, all))
		}
	}
}

// arrival continues a sentence about a starting worker: where it is, and since when.
func (d *decision) arrival(a *arrival.State) string {
	if a == nil {
		return ""
	}
	return "; " + strings.TrimSuffix(a.Stage.Text()+d.lasting(", for ", a.Since)+": "+a.Message, ": ")
}

// arrivals continues a sentence about a group's pods on their way: how many have reached each stage.
func (d *decision) arrivals(group int) string {
	count := map[arrival.Stage]int{}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if a := n.Arrival; a != nil && n.GroupIndex == group && n.State == model.Pending {
			count[a.Stage]++
		}
	}
	var stages []string
	for _, stage := range arrival.Stages {
		if n := count[stage]; n > 0 {
			stages = append(stages, fmt.Sprintf("%d %s", n, stage))
		}
	}
	return strings.TrimSuffix(": "+joined(stages), ": ")
}

// explainOwned explains a request as its status does, and why each group serves its bundles or does not.
func (d *decision) explainOwned(e *model.Explanation, owned raydemand.Owned) {
	e.About = "request " + owned.ID
	for _, row := range d.requests {
		if row.ID != owned.ID || row.Plain {
			continue
		}
		e.Reason = after(fmt.Sprintf("%s: %d of %d bundles served, %d waiting: ", row.State, row.Served, row.Asked,
			row.Waiting), row.Reason)
	}
	items := d.Items(owned.Requests)
	for i, it := range items { // the plan serves it together with equal bundles of others
		for _, c := range d.claimed {
			if c.item.Key == it.Key {
				items[i] = c.item
			}
		}
	}
	d.addItems(e, "", items...)
}

// explainPlain explains the request without an owner. Over REST, it is planned together with the requests of owners.
func (d *decision) explainPlain(e *model.Explanation) {
	all := model.DemandSummary{Kind: model.KindRequestResources}
	var why []string
	e.About = "request " + model.PlainRequest
	for _, c := range d.claimed {
		if asked := c.item.Request.Bundle; !asked.IsZero() {
			all.Resources = asked
		}
		all.Selectors = slices.Concat(all.Selectors, c.item.Asked().Selectors)
		all.Join(d.summary(model.KindRequestResources, c.item, c.left))
		if reason := d.why[c.item]; said(reason) {
			why = append(why, c.of.Purpose+": "+reason.Message)
		}
		d.addItems(e, c.of.Purpose, c.item)
	}
	e.Reason = d.tally(&all, model.List(why))
}
