// Package why turns a decision into a Plan, and answers questions about it. It reads what package place recorded
// when it decided: codes, numbers and names. Each sentence for them is in one table (sentences.go); what follows from
// the snapshot alone, such as why a node is not idle, is in package model. It must not decide anything or place demand,
// and package place must not import it.
//
// A reason is a code and a sentence. A verdict is the reason why a group does not serve some demand, and by how many of
// its properties it misses. A bound is how many more pods a group may have, with the limit that says so. An obstacle is
// either. A purpose is what pods are launched for; claimants are the requests over REST that ask for a kind of bundle.
//
//	why.go         the rows of the plan, what becomes of demand, requests over REST and warm capacity, and findings
//	unserved.go    why no group serves demand: what each lacks, or its limit
//	limits.go      the limits of groups
//	slice.go       what GPUs lack
//	group.go       why a group has its size: what it launches, or what was preferred
//	worker.go      why a worker stays or goes
//	explain.go     answers to questions
package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decision is one decision: the launches by group, what they serve, and what several sentences say about it.
type decision struct {
	*place.Search
	given  []int64
	out    *place.Outcome
	bounds map[int]bound  // those that were asked for, by group
	full   *landing.Taken // the nodes with all pods
	// placed counts the bundles of each item that wait for pods requested earlier, and for pods that are launched now.
	placed map[*place.Item]model.DemandSummary
	// why is why an item or a gang is not served.
	why     map[any]model.Reason
	claimed []claimed
	// refused and launchedFor are the requests that are not planned for, and those that pods are launched for.
	refused, launchedFor claimants
	requests             []model.RequestPlan
	candidates           []*place.Item // what is not served, then what pods are launched for, each once
}

// claimed is a bundle of a call of request_resources, and how many of it are not served.
type claimed struct {
	of   *place.Claim
	item *place.Item
	left int64
}

// newDecision finds why demand is not served, and what serves each request over REST.
func newDecision(p *place.Search, given []int64, out place.Outcome) *decision {
	d := &decision{Search: p, given: given, out: &out, bounds: map[int]bound{},
		refused: claimants{}, launchedFor: claimants{},
		placed: map[*place.Item]model.DemandSummary{}, why: map[any]model.Reason{}}
	for _, w := range out.Waits {
		s := d.placed[w.Item]
		s.Waiting, s.WaitingSince = s.Waiting+w.Count, model.Earliest(s.WaitingSince, w.Since)
		d.placed[w.Item] = s
	}
	known := map[*place.Item]bool{}
	add := func(items ...*place.Item) {
		for _, it := range items {
			if !known[it] && !it.Deferred {
				known[it], d.candidates = true, append(d.candidates, it)
			}
		}
	}
	for i, n := range out.Unserved {
		if it := p.Requests[i]; n > 0 {
			d.why[it] = d.unmetReason(it)
			add(it)
		}
	}
	alike := map[string]model.Reason{} // gangs that hold no nodes yet
	for _, g := range out.Gangs {
		reason, known := alike[g.Key]
		if !known || g.Held {
			reason = d.gangReason(g)
		}
		if d.why[g] = reason; !g.Held {
			alike[g.Key] = reason
		}
		if !g.Deferred {
			add(g.Items()...)
		}
	}
	for i := range p.RestRequests {
		s := &p.RestRequests[i]
		for k, it := range s.Items {
			if s.Admitted[k] < it.Request.Count {
				d.refused[it.Key] = append(d.refused[it.Key], s)
			}
		}
	}
	for i := range p.Claims {
		c := &p.Claims[i]
		for k, left := range out.LeftOf(i, *c) {
			d.claimed = append(d.claimed, claimed{c, c.Items[k], left})
		}
		if slices.Contains(out.Claims, i) {
			d.explainClaim(c)
			add(p.UnservedOf(i, &out)...)
		}
	}
	for _, e := range out.Log {
		s := d.placed[e.Item]
		s.Launching += e.Count
		d.placed[e.Item] = s
		add(e.Item)
	}
	d.planRequests()
	return d
}

func evaluated(s *place.RestRequest) bool { return !s.Unevaluated }

// explainClaim explains, for each bundle of a call, why it is not served. Ray serves a call from within Ray as a whole
// or not at all, so a bundle that could be served alone names the other bundle that prevents it.
func (d *decision) explainClaim(c *place.Claim) {
	var whole model.Reason
	for _, it := range c.Items {
		d.why[it] = d.unmetReason(it)
		if !said(whole) && d.why[it].Code == model.Impossible {
			whole = together.with(model.Describe(it.Request), d.why[it].Message)
		}
	}
	planned := slices.DeleteFunc(slices.Clone(c.Items), func(it *place.Item) bool { return it.Deferred })
	if !said(whole) && len(planned) > 0 {
		whole = d.unmetReason(planned...)
	}
	for _, it := range c.Items {
		switch {
		case it.Deferred || !d.Possible(it):
		case c.Purpose != place.OverREST:
			d.why[it] = whole
		case c.Refused && len(d.refused[it.Key]) > 0 && !slices.ContainsFunc(d.refused[it.Key], evaluated):
			d.why[it] = unevaluated.with()
		}
	}
}

// Report returns the plan, sorted: groups by name, terminations by pod, unmet demand in the order of planning.
func Report(p *place.Search, given []int64, out place.Outcome) model.Plan {
	d := newDecision(p, given, out)
	plan := model.Plan{
		Launch: map[string]int{}, Terminate: []model.Termination{}, Groups: []model.GroupPlan{},
		InfeasibleRequests: []model.UnmetRequest{}, InfeasibleGangRequests: []model.UnmetGang{},
		InfeasibleRequestResources: []model.UnmetRequest{}, Summary: d.summarize(), Requests: d.requests,
		Warm: d.warmPlans(), Deferred: d.Deferred(), Stays: d.stays(), Findings: d.findings(),
	}
	price, priced := 0.0, false
	for i, n := range given {
		plan.Groups = append(plan.Groups, d.row(i))
		if n > 0 {
			plan.Launch[d.Groups[i].Name] = int(n)
			priced = (priced || len(plan.Launch) == 1) && d.Groups[i].Price != nil // of all launched groups
			price += model.AmountOr(d.Groups[i].Price, 0) * float64(n)
		}
	}
	if priced {
		plan.Price = &price
	}
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.Stop != "" {
			plan.Terminate = append(plan.Terminate, model.Termination{Pod: n.Pod, Group: n.Group, Reason: n.Stop,
				Busy: n.State == model.Running, Message: n.StopMessage})
		}
	}
	slices.SortFunc(plan.Terminate, func(a, b model.Termination) int { return cmp.Compare(a.Pod, b.Pod) })
	for i, it := range d.Requests {
		if rest := it.Asked(); out.Unserved[i] > 0 {
			rest.Count = out.Unserved[i]
			plan.InfeasibleRequests = append(plan.InfeasibleRequests,
				model.UnmetRequest{Request: rest, Reason: d.why[it]})
		}
	}
	for _, g := range out.Gangs {
		plan.InfeasibleGangRequests = append(plan.InfeasibleGangRequests,
			model.UnmetGang{Gang: *g.Gang, Reason: d.why[g]})
	}
	for _, c := range d.claimed {
		rest := model.UnmetRequest{Request: c.item.Request, Reason: d.why[c.item],
			OverREST: c.of.Purpose == place.OverREST}
		if c.of.Refused {
			rest.AskedBy = d.refused.names(c.item, "the plain request")
		}
		if rest.Count = c.left; c.left > 0 {
			plan.InfeasibleRequestResources = append(plan.InfeasibleRequestResources, rest)
		}
	}
	return plan
}

func (d *decision) row(i int) model.GroupPlan {
	g := &d.Groups[i]
	return model.GroupPlan{
		Name: g.Name, Current: int(g.Current), Desired: int(max(0, g.Current+d.given[i]-d.stoppedPods(i))),
		Min: int(g.MinPods), Max: int(g.MaxPods), Held: int(d.HeldOf(i)), BelowMin: int(d.belowMinimum(i)),
		Resources: g.Resources.Clone(), Reasons: d.reasons(i), Slice: g.Slice,
	}
}

// stoppedPods counts the pods that a group loses. Stopping one host stops its whole replica.
func (d *decision) stoppedPods(i int) (stopped int64) {
	byReplica := map[string]int64{}
	for at := range d.Nodes {
		if n := &d.Nodes[at]; n.GroupIndex == i && n.Stop != "" {
			byReplica[n.Replica]++
		}
	}
	for _, n := range byReplica {
		stopped += place.RoundUp(n, d.Groups[i].Hosts)
	}
	return stopped
}

// findings are those of the placer, then groups without a price, which make the prices of their substitutes irrelevant,
// groups whose limits contradict each other, slice requirements that cannot be evaluated, and warm capacity without
// effect.
func (d *decision) findings() []raydemand.Finding {
	all := slices.Clip(d.Findings)
	add := func(code string, severity raydemand.Severity, object, field, seen, why, fix string) {
		all = append(all, raydemand.Finding{Code: code, Severity: severity, Object: object, Field: field, Seen: seen,
			Why: why, Fix: fix})
	}
	withGPUs, proven := 0, false
	for i := range d.Groups {
		g := &d.Groups[i]
		s := g.Slice
		proven = proven || s != nil && s.Kind != gpuinfo.WholeUnproven && s.Kind != gpuinfo.MIGUnproven
		if g.Resources.Has(raydemand.GPU) > 0 {
			withGPUs++
		}
		var priced []string
		for k := range d.Groups {
			if g.Price == nil && d.Costs.Of[k] == d.Costs.Of[i] && d.Groups[k].Price != nil {
				priced = append(priced, d.Groups[k].Name)
			}
		}
		if len(priced) > 0 {
			add(model.FindingUnpriced, raydemand.Info, "group "+g.Name, "price", "", joined(priced)+
				" could serve the same work and "+model.OneOrMany(int64(len(priced)), "has", "have")+" a price; "+
				"because this group has none, the plan compares all of them by accelerators, CPUs and memory",
				"set the group's price")
		}
	}
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Blocked == model.CodeInvalidLimits {
			add(model.FindingMinAboveMax, raydemand.Error, "group "+g.Name, "minReplicas", fmt.Sprint(g.Min),
				strings.TrimPrefix(blocked(g).Message, fmt.Sprintf("minReplicas %d is ", g.Min)),
				"lower minReplicas or raise maxReplicas")
		}
	}
	if d.Sliced && withGPUs > 0 && !proven {
		add(model.FindingSlicesUnknown, raydemand.Warning, "snapshot", "groups", fmt.Sprintf("%d with GPUs", withGPUs),
			"nothing proves what the GPUs of any group are, so demand with requirements for GPU memory, compute or "+
				"isolation is not served; other demand is planned by the resources that groups declare",
			"let Heliostat read nodes (in a snapshot file: kubeNodes beside rayCluster, or slice in each group); if "+
				"it reads them, run GPU feature discovery there, or set --resource NAME=KIND: `autoscaler nodepools` "+
				"shows what the nodes prove")
	}
	policy := cmp.Or(d.WarmPolicy, "capacity policy")
	for k := range d.Warm {
		switch e := &d.Warm[k]; {
		case e.Item == nil && e.Group < 0:
			all = append(all, capacity.GroupUnknown(policy, e.Name, e.WarmEntry.Group, capacity.NoWorkers))
		case e.Item != nil && !d.Possible(e.Item):
			add(model.FindingWarmImpossible, raydemand.Error, policy, e.Name, model.Describe(e.Request()),
				"no worker group could ever hold it, so nothing is kept warm for it",
				"ask for what one worker of some group has")
		}
	}
	return all
}

// summarize accounts for all demand. Refused bundles over REST count with the admitted ones of the same kind.
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
	s.AddUnmet(d.why[it].Code, unserved)
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
	plan, rest := &a.Plan, a.Refused()
	missing := plan.Asked - plan.Served - plan.Waiting
	on := func(n int64) string { return fmt.Sprintf("%d of %s", n, model.Plural(plan.Asked, "bundle")) }
	switch {
	case len(a.Deferred) > 0:
		return raydemand.RequestCapped, d.unmetReason(a.Deferred...)
	case missing > 0:
	case plan.Waiting == 0:
		return raydemand.RequestSatisfied, satisfied.with()
	case a.OnTheWay < plan.Waiting && d.Held != nil:
		return raydemand.RequestWaiting, followLater.with(on(plan.Waiting - a.OnTheWay))
	case a.Planned > 0:
		return raydemand.RequestWaiting, launchingFor.with(on(a.Planned))
	default:
		return raydemand.RequestWaiting, requested.with(on(plan.Waiting))
	}
	impossible := func(it *place.Item) bool { return !d.Possible(it) }
	if a.Unevaluated && !slices.ContainsFunc(d.Items(rest), impossible) {
		return raydemand.RequestCapped, unevaluated.with()
	}
	if len(rest) == 0 {
		rest = a.Requests
	}
	// Report the impossible bundles first: waiting does not help them.
	items := d.Items(rest)
	slices.SortStableFunc(items, func(x, y *place.Item) int { return place.CompareBool(d.Possible(x), d.Possible(y)) })
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
		if reason.Message += "; " + obstacle.Message; blame {
			reason.Code = obstacle.Code
		}
	}
	return reason
}

// warmObstacle explains why an entry gets less than it wants.
func (d *decision) warmObstacle(e *place.WarmEntry) (limit model.Reason) {
	switch {
	case e.Item == nil && e.Group < 0:
		return noGroup.with(e.WarmEntry.Group)
	case e.Item != nil && !d.Possible(e.Item):
		return neverHeld.with()
	}
	first := ""
	for i := range d.Groups {
		g, launches := &d.Groups[i], d.WarmRules.Launch[i]
		if i != e.Group && (e.Item == nil || !e.Item.Suits(g.Shape)) {
			continue
		}
		reason := d.limit(i)
		if launches {
			reason = cmp.Or(reason, d.inFlightCap(i))
		}
		limit = cmp.Or(limit, reason)
		if !said(reason) && !launches && !d.DrawsGangs(i) {
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
			e.Item != nil && e.Launching > 0 && d.out.Warmed[i] > 0 {
			all = append(all, after(e.Name+": ", d.warmReason(e, own)))
		}
	}
	return all
}
