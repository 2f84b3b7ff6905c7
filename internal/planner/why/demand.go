package why

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// summarize accounts for all demand.
func (d *decision) summarize() []model.DemandSummary {
	all := make([]model.DemandSummary, 0, len(d.Requests)+len(d.Gangs))
	for i, it := range d.Requests {
		all = append(all, d.summary(model.KindRequest, it, d.out.Unserved[i]))
	}
	for _, g := range d.Gangs {
		all = append(all, d.gangSummary(g))
	}
	known := map[string]int{} // index of the admitted REST requests, by kind
	for _, c := range d.claimed {
		row := d.summary(model.KindRequestResources, c.item, c.left)
		row.OverREST = c.of.Purpose == place.OverREST
		if at, admitted := known[c.item.Key]; c.of.Refused && admitted {
			all[at].Asked += row.Asked
			all[at].AddUnmet(d.why[c.item].Code, row.Asked)
			continue
		}
		if row.OverREST {
			known[c.item.Key] = len(all)
		}
		all = append(all, row)
	}
	return all
}

func (d *decision) summary(kind model.DemandKind, it *place.Item, unserved int64) model.DemandSummary {
	s := model.DemandSummary{Kind: kind, Resources: it.Request.Bundle, Selectors: it.Asked().Selectors,
		Slice: it.Request.Slice, Moving: it.Request.Moving, Asked: it.Request.Count}
	s.Join(d.placed[it])
	s.Served = s.Asked - unserved - s.Waiting - s.Launching
	if unserved > 0 {
		s.AddUnmet(d.why[it].Code, unserved)
	}
	return s
}

// gangSummary counts a gang with the last of its bundles, because it starts when all of them have a place.
func (d *decision) gangSummary(g *place.Gang) model.DemandSummary {
	s := model.DemandSummary{Kind: model.KindGang, Gang: g.Gang, Asked: 1}
	if reason, unserved := d.why[g]; unserved {
		s.AddUnmet(reason.Code, 1)
		return s
	}
	var all model.DemandSummary
	for _, it := range g.Items() {
		all.Join(d.placed[it])
	}
	switch {
	case all.Launching > 0:
		s.Launching = 1
	case all.Waiting > 0:
		s.Waiting, s.WaitingSince = 1, all.WaitingSince
	default:
		s.Served = 1
	}
	return s
}

// tally counts demand by what becomes of it, and says why some of it is not served.
func (d *decision) tally(s *model.DemandSummary, why string) model.Reason {
	text := fmt.Sprintf("%d asked, %s", s.Asked, s.TallyWaiting(d.lasting(", the oldest for ", s.WaitingSince)))
	if why != "" {
		text += ": " + why
	}
	return model.Reason{Code: s.Worst(), Message: text}
}

// planRequests reports what serves each request over REST.
func (d *decision) planRequests() {
	for i := range d.RestRequests {
		s := &d.RestRequests[i]
		for k, it := range s.Items {
			if s.Admitted[k] < it.Request.Count {
				d.refused[it.Key] = append(d.refused[it.Key], s)
			}
		}
	}
	for _, a := range d.Attribute(d.given, d.out) {
		for _, it := range a.Launching {
			d.launchedFor[it.Key] = append(d.launchedFor[it.Key], a.RestRequest)
		}
		a.Plan.State, a.Plan.Reason = d.requestState(a)
		d.requests = append(d.requests, a.Plan)
	}
	slices.SortStableFunc(d.requests, func(a, b model.RequestPlan) int {
		return cmp.Or(place.CompareBool(b.Plain, a.Plain), cmp.Compare(a.ID, b.ID))
	})
}

func (d *decision) requestState(a *place.Attribution) (raydemand.RequestState, model.Reason) {
	plan := &a.Plan
	missing := plan.Asked - plan.Served - plan.Waiting
	impossible := func(it *place.Item) bool { return !d.Possible(it) }
	on := func(n int64) string { return fmt.Sprintf("%d of %s", n, model.Plural(plan.Asked, "bundle")) }
	switch {
	case len(a.Deferred) > 0:
		return raydemand.RequestCapped, d.unmetReason(a.Deferred...)
	case missing > 0 && a.Unevaluated && !slices.ContainsFunc(d.Items(a.Refused()), impossible):
		return raydemand.RequestCapped, unevaluated.with()
	case missing <= 0 && plan.Waiting == 0:
		return raydemand.RequestSatisfied, satisfied.with()
	case missing <= 0 && a.OnTheWay < plan.Waiting && d.Held != nil:
		return raydemand.RequestWaiting, followLater.with(on(plan.Waiting - a.OnTheWay))
	case missing <= 0 && a.Planned > 0:
		return raydemand.RequestWaiting, launchingFor.with(on(a.Planned))
	case missing <= 0:
		return raydemand.RequestWaiting, requested.with(on(plan.Waiting))
	}
	rest := a.Refused()
	if len(rest) == 0 {
		rest = a.Requests
	}
	items := d.Items(rest)
	// Report the impossible bundles first: waiting does not help them.
	slices.SortStableFunc(items, func(x, y *place.Item) int {
		return place.CompareBool(d.Possible(x), d.Possible(y))
	})
	reason := d.unmetReason(items...)
	switch {
	case a.AllOrNothing && plan.Asked > 1 && reason.Code != model.Impossible:
		reason = after(fmt.Sprintf("needs all %d bundles at once: ", plan.Asked), reason)
	case missing < plan.Asked:
		reason = after(on(missing)+": ", reason)
	}
	if reason.Code == model.Impossible {
		return raydemand.RequestImpossible, reason
	}
	return raydemand.RequestCapped, reason
}

// warmPlans returns what the plan does for each entry of the warm capacity, those with a group first.
func (d *decision) warmPlans() (all []model.WarmPlan) {
	for k := range d.Warm {
		e := &d.Warm[k]
		row := model.WarmPlan{WarmEntry: *e.WarmEntry, Ready: e.Ready, Coming: e.Coming, Launching: e.Launching,
			Pods: d.WarmPods(e), Reason: d.warmReason(e, true)}
		for _, n := range e.Nodes {
			if d.WarmFor(d.out, n) == e {
				row.Kept = append(row.Kept, d.Nodes[n].Pod)
			}
		}
		slices.Sort(row.Kept)
		all = append(all, row)
	}
	return all
}

// warmReason explains what the plan does for one entry of warm capacity: 1 of 3 workers of group gpu free, 1 starting,
// launching 1. What an entry lacks is not the fault of a group that holds a part of it: without blame, the code is that
// of an entry that has all it wants.
func (d *decision) warmReason(e *place.WarmEntry, blame bool) model.Reason {
	what := "× " + model.Describe(e.Request())
	if e.Item == nil {
		what = model.OneOrMany(e.Count, "worker", "workers") + " of group " + e.WarmEntry.Group
	}
	reason := model.Reason{Code: model.CodeWarm, Message: fmt.Sprintf("%d of %d %s free", e.Ready, e.Count, what)}
	if e.Coming > 0 {
		reason.Message += fmt.Sprintf(", %d starting", e.Coming)
	}
	if e.Launching > 0 {
		reason.Message += fmt.Sprintf(", launching %d", e.Launching)
	}
	if e.Schedule != "" {
		reason.Code = model.CodeSchedule
		reason.Message += ", by the schedule " + e.Schedule
	}
	if e.Missing() > 0 {
		obstacle := d.warmObstacle(e)
		reason.Message += "; " + obstacle.Message
		if blame {
			reason.Code = obstacle.Code
		}
	}
	return reason
}

// warmObstacle explains why an entry gets less than it wants.
func (d *decision) warmObstacle(e *place.WarmEntry) model.Reason {
	switch {
	case e.Item == nil && e.Group < 0:
		return noGroup.with(e.WarmEntry.Group)
	case e.Item != nil && !d.Possible(e.Item):
		return neverHeld.with()
	}
	first, limit := "", model.Reason{}
	for i := range d.Groups {
		g, launches := &d.Groups[i], d.WarmRules.Launch[i]
		if i != e.Group && (e.Item == nil || !e.Item.Suits(g.Shape)) {
			continue
		}
		reason := d.limit(i)
		if !said(reason) && launches {
			reason = d.inFlightCap(i)
		}
		switch {
		case said(reason) && (!said(limit) || e.Item == nil):
			limit = reason
		case !said(reason) && !launches:
			first = cmp.Or(first, g.Name)
		}
	}
	if first != "" {
		return demandFirst.with(first)
	}
	return cmp.Or(limit, otherPlaces.with())
}

// warmReasons explains what a group has for warm capacity: one reason for each entry that has a part of it.
func (d *decision) warmReasons(i int) (all []model.Reason) {
	for k := range d.Warm {
		e := &d.Warm[k]
		if own := e.Group == i; own || d.WarmPods(e)[d.Groups[i].Name] > 0 ||
			e.Item != nil && e.Launching > 0 && d.out.WarmLaunched(i) > 0 {
			all = append(all, after(e.Name+": ", d.warmReason(e, own)))
		}
	}
	return all
}
