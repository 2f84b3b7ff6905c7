package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
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

// planRequests reports what serves each request over REST. It deals out the places that the decision found for each
// kind of bundle, in the order in which it assigned them.
func (d *decision) planRequests() {
	d.refused = claimants{}
	for i := range d.RestRequests {
		s := &d.RestRequests[i]
		for k, it := range s.Items {
			if s.Admitted[k] < it.Request.Count {
				d.refused[it.Key] = append(d.refused[it.Key], s)
			}
		}
	}
	for _, s := range d.AssignmentOrder() {
		a := attribution{decision: d, request: s, groups: map[int]*model.RequestGroup{}, seen: map[int]bool{}}
		d.requests = append(d.requests, a.plan())
	}
	slices.SortStableFunc(d.requests, func(a, b model.RequestPlan) int {
		return cmp.Or(place.CompareBool(b.Plain, a.Plain), cmp.Compare(a.ID, b.ID))
	})
}

// attribution counts what one request uses.
type attribution struct {
	*decision
	request                  *place.RestRequest
	joined, waiting, planned int64
	groups                   map[int]*model.RequestGroup
	seen                     map[int]bool // nodes by number
	pods                     []string
}

// plan takes the next placements for the request and reports its state.
func (a *attribution) plan() model.RequestPlan {
	s := a.request
	plan := model.RequestPlan{ID: s.ID, Owner: s.Owner, Plain: s.Plain, Priority: s.Priority}
	// The planned pods are launched now, or when the in-flight caps allow it.
	launchable := a.Held != nil || a.Launches(a.RestClaim, a.out)
	if s.AllOrNothing && !launchable {
		s.None() // it was planned for, but cannot be served
	}
	var deferred []*place.Item // too many for this plan
	for i, it := range s.Items {
		plan.Asked += it.Request.Count
		if it.Deferred {
			s.Admitted[i], deferred = 0, append(deferred, it)
		}
		plan.Waiting += s.Admitted[i]
		if it.Trivial() {
			a.joined += s.Admitted[i]
			continue
		}
		planned := a.planned
		if a.out.Places[it.Key] = a.take(a.out.Places[it.Key], s.Admitted[i]); a.planned > planned {
			a.launchedFor[it.Key] = append(a.launchedFor[it.Key], s)
		}
	}
	plan.Served = a.joined
	if plan.Waiting -= a.joined; !launchable {
		plan.Waiting = a.waiting
	}
	slices.Sort(a.pods)
	plan.Groups, plan.Pods = a.rows(), a.pods[:min(len(a.pods), model.MaxRequestPods)]
	plan.State, plan.Reason = a.state(&plan, deferred)
	return plan
}

func (a *attribution) state(plan *model.RequestPlan, deferred []*place.Item) (raydemand.RequestState, model.Reason) {
	missing := plan.Asked - plan.Served - plan.Waiting
	impossible := func(it *place.Item) bool { return !a.Possible(it) }
	on := func(n int64) string { return fmt.Sprintf("%d of %s", n, model.Plural(plan.Asked, "bundle")) }
	switch {
	case len(deferred) > 0:
		return raydemand.RequestCapped, a.unmetReason(deferred...)
	case missing > 0 && a.request.Unevaluated && !slices.ContainsFunc(a.Items(a.request.Refused()), impossible):
		return raydemand.RequestCapped, unevaluated.with()
	case missing <= 0 && plan.Waiting == 0:
		return raydemand.RequestSatisfied, satisfied.with()
	case missing <= 0 && a.waiting < plan.Waiting && a.Held != nil:
		return raydemand.RequestWaiting, followLater.with(on(plan.Waiting - a.waiting))
	case missing <= 0 && a.planned > 0:
		return raydemand.RequestWaiting, launchingFor.with(on(a.planned))
	case missing <= 0:
		return raydemand.RequestWaiting, requested.with(on(plan.Waiting))
	}
	rest := a.request.Refused()
	if len(rest) == 0 {
		rest = a.request.Requests
	}
	items := a.Items(rest)
	// Report the impossible bundles first: waiting does not help them.
	slices.SortStableFunc(items, func(x, y *place.Item) int {
		return place.CompareBool(a.Possible(x), a.Possible(y))
	})
	reason := a.unmetReason(items...)
	if a.request.AllOrNothing && plan.Asked > 1 && reason.Code != model.Impossible {
		reason = after(fmt.Sprintf("needs all %d bundles at once: ", plan.Asked), reason)
	} else if missing < plan.Asked {
		reason = after(on(missing)+": ", reason)
	}
	if reason.Code == model.Impossible {
		return raydemand.RequestImpossible, reason
	}
	return raydemand.RequestCapped, reason
}

// take takes n bundles from the first placements and returns the placements with bundles left.
func (a *attribution) take(from []place.Placement, n int64) []place.Placement {
	for n > 0 && len(from) > 0 {
		at := &from[0]
		bundles := min(n, at.Count-at.Used)
		a.add(at, at.Used/at.Each, (at.Used+bundles-1)/at.Each+1, bundles)
		at.Used += bundles
		if n -= bundles; at.Used == at.Count {
			from = from[1:]
		}
	}
	return from
}

// add counts bundles on the nodes of a placement from first up to end.
func (a *attribution) add(at *place.Placement, first, end, bundles int64) {
	g := a.groups[at.Group]
	if g == nil {
		g = &model.RequestGroup{}
		if at.Group != place.HeadGroup {
			g.Name = a.Groups[at.Group].Name
		}
		a.groups[at.Group] = g
	}
	onWay := at.Phase == place.OnTheWay
	if !onWay {
		a.joined += bundles
	} else if a.waiting += bundles; at.Planned {
		a.planned += bundles
	}
	if at.Members == nil {
		g.Pods += end - first
		g.Waiting += end - first
		return
	}
	for _, number := range at.Members[first:end] {
		if a.seen[number] {
			continue
		}
		a.seen[number] = true
		g.Pods++
		n := &a.Nodes[number]
		if onWay {
			g.Waiting++
			if n.Since.After(g.Since) {
				g.Since = n.Since
			}
		}
		if !n.Expected {
			a.pods = append(a.pods, n.Pod)
		}
	}
}

// rows returns the groups by name. A request with several kinds of bundles may count a pod without a name more than
// once, so rows limits those pods to the number that is planned or missing.
func (a *attribution) rows() (rows []model.RequestGroup) {
	for i, g := range a.groups {
		if i != place.HeadGroup {
			named := int64(0)
			for number := range a.seen {
				if a.Nodes[number].GroupIndex == i {
					named++
				}
			}
			surplus := max(g.Pods-named-a.given[i]-a.Groups[i].Missing, 0)
			g.Pods -= surplus
			g.Waiting -= surplus
		}
		rows = append(rows, *g)
	}
	slices.SortFunc(rows, func(a, b model.RequestGroup) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// warmPlans returns what the plan does for each entry of the warm capacity, those with a group first.
func (d *decision) warmPlans() (all []model.WarmPlan) {
	for k := range d.Warm {
		e := &d.Warm[k]
		row := model.WarmPlan{WarmEntry: *e.WarmEntry, Ready: e.Ready, Coming: e.Coming, Launching: e.Launching,
			Pods: d.WarmPods(e), Reason: d.warmReason(e)}
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
// launching 1.
func (d *decision) warmReason(e *place.WarmEntry) model.Reason {
	what := "× " + model.Describe(e.Request())
	if e.Item == nil {
		what = model.OneOrMany(e.Count, "worker", "workers") + " of group " + e.WarmEntry.Group
	}
	text := fmt.Sprintf("%d of %d %s free", e.Ready, e.Count, what)
	if e.Coming > 0 {
		text += fmt.Sprintf(", %d starting", e.Coming)
	}
	if e.Launching > 0 {
		text += fmt.Sprintf(", launching %d", e.Launching)
	}
	if e.Schedule != "" {
		text += ", by the schedule " + e.Schedule
	}
	if e.Missing() == 0 {
		return model.Reason{Code: warmCode(e), Message: text}
	}
	return after(text+"; ", d.warmObstacle(e))
}

// warmCode is the code of an entry that has all it wants.
func warmCode(e *place.WarmEntry) string {
	if e.Schedule != "" {
		return model.CodeSchedule
	}
	return model.CodeWarm
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
		g := &d.Groups[i]
		if i != e.Group && (e.Item == nil || !e.Item.Suits(g.Shape)) {
			continue
		}
		reason := d.limit(i)
		if !said(reason) && d.WarmRules.Launch[i] {
			reason = d.inFlightCap(i)
		}
		switch {
		case said(reason) && (!said(limit) || e.Item == nil):
			limit = reason
		case !said(reason) && !d.WarmRules.Launch[i]:
			first = cmp.Or(first, g.Name)
		}
	}
	if first != "" {
		return demandFirst.with(first)
	}
	return cmp.Or(limit, otherPlaces.with())
}

// warmReasons explains what a group has for warm capacity: one reason for each entry that has a part of it. What a
// bundle lacks is not the fault of the group that holds a part of it.
func (d *decision) warmReasons(i int) (all []model.Reason) {
	for k := range d.Warm {
		e := &d.Warm[k]
		own := e.Group == i
		if !own && d.WarmPods(e)[d.Groups[i].Name] == 0 &&
			(e.Item == nil || e.Launching == 0 || d.out.WarmLaunched(i) == 0) {
			continue
		}
		reason := after(e.Name+": ", d.warmReason(e))
		if !own {
			reason.Code = warmCode(e)
		}
		all = append(all, reason)
	}
	return all
}

// warmFindings reports entries that can have no effect.
func (d *decision) warmFindings() (all []raydemand.Finding) {
	policy := cmp.Or(d.WarmPolicy, "capacity policy")
	for k := range d.Warm {
		e := &d.Warm[k]
		switch {
		case e.Item == nil && e.Group < 0:
			all = append(all, capacity.GroupUnknown(policy, e.Name, e.WarmEntry.Group, capacity.NoWorkers))
		case e.Item != nil && !d.Possible(e.Item):
			all = append(all, raydemand.Finding{Code: model.FindingWarmImpossible, Severity: raydemand.Error,
				Object: policy, Field: e.Name, Seen: model.Describe(e.Request()),
				Why: "no worker group could ever hold it, so nothing is kept warm for it",
				Fix: "ask for what one worker of some group has"})
		}
	}
	return all
}
