package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// requestPlans reports what serves each request over REST. It assigns the placements of each kind (package search,
// assignment.go) in the order in which requests are assigned.
func (r *Reporter) requestPlans(given []int64, out *search.Outcome) []model.RequestPlan {
	if len(r.RestRequests) == 0 {
		return nil
	}
	d := attribution{Reporter: r, places: r.Assignments(given), deferred: map[string]bool{}}
	for _, it := range r.Claims[r.RestClaim].Items {
		d.deferred[it.Key] = it.Deferred
	}
	plans := make([]model.RequestPlan, 0, len(r.RestRequests))
	for _, s := range r.AssignmentOrder() {
		plans = append(plans, d.of(s, given, out))
	}
	slices.SortStableFunc(plans, func(a, b model.RequestPlan) int {
		return cmp.Or(vector.CompareBool(b.Plain, a.Plain), cmp.Compare(a.ID, b.ID))
	})
	return plans
}

// attribution assigns placements to requests.
type attribution struct {
	*Reporter
	places search.Places
	// deferred are the kinds of bundles that are too many for this plan.
	deferred map[string]bool
}

// of takes the next placements for a request and reports its state.
func (a *attribution) of(s *search.RestRequest, given []int64, out *search.Outcome) model.RequestPlan {
	plan := model.RequestPlan{ID: s.ID, Owner: s.Owner, Plain: s.Plain, Priority: s.Priority}
	t := tally{Search: a.Search, groups: map[int]*model.RequestGroup{}, seen: map[int]bool{}}
	var had int64
	if s.AllOrNothing && !a.launchable(out) {
		s.None() // it was planned for, but cannot be served
	}
	for i, it := range s.Items {
		plan.Asked += it.Request.Count
		if a.deferred[it.Key] {
			s.Admitted[i] = 0
		}
		had += s.Admitted[i]
		if it.Trivial() {
			t.joined += s.Admitted[i]
			continue
		}
		a.places.Take(it.Key, s.Admitted[i], t.take)
	}
	plan.Served, plan.Waiting = t.joined, had-t.joined
	if !a.launchable(out) {
		plan.Waiting = t.waiting
	}
	plan.Groups, plan.Pods = t.rows(given), t.names()
	plan.State, plan.Reason = a.stateOf(s, &plan, &t, given)
	return plan
}

// launchable reports whether the planned pods will be launched, now or when the in-flight caps allow it.
func (r *Reporter) launchable(out *search.Outcome) bool {
	return r.Held != nil || r.Launches(r.RestClaim, out)
}

func (a *attribution) stateOf(
	s *search.RestRequest,
	plan *model.RequestPlan,
	t *tally,
	given []int64,
) (raydemand.RequestState, model.Reason) {
	missing := plan.Asked - plan.Served - plan.Waiting
	if slices.ContainsFunc(s.Items, func(it *vector.Item) bool { return a.deferred[it.Key] }) {
		return raydemand.RequestCapped, a.UnmetReason(a.DeferredItems(), given, "")
	}
	if missing > 0 && s.Unevaluated &&
		!slices.ContainsFunc(a.Items(s.Refused()), func(it *vector.Item) bool { return !a.Possible(it) }) {
		return raydemand.RequestCapped, model.Reason{Code: raydemand.CodeTooMany,
			Message: "too many requests come before this one to evaluate it; " +
				"it is evaluated when there are fewer of them, or when they ask for fewer shapes"}
	}
	if missing > 0 {
		return a.unmetState(s, missing, plan.Asked, given)
	}
	on := func(n int64) string { return fmt.Sprintf("%d of %s", n, phrase.Plural(plan.Asked, "bundle")) }
	switch {
	case plan.Waiting == 0:
		return raydemand.RequestSatisfied, model.Reason{
			Code:    raydemand.CodeSatisfied,
			Message: "workers that have joined Ray have room for all of it",
		}
	case t.waiting < plan.Waiting && a.Held != nil:
		return raydemand.RequestWaiting, model.Reason{
			Code:    model.CodeInFlight,
			Message: on(plan.Waiting-t.waiting) + " follow when earlier pods have joined",
		}
	case t.planned > 0:
		return raydemand.RequestWaiting, model.Reason{
			Code:    model.CodeLaunch,
			Message: "launching pods for " + on(t.planned),
		}
	}
	return raydemand.RequestWaiting, model.Reason{
		Code:    model.CodeOnTheWay,
		Message: "pods requested earlier have not joined Ray yet, for " + on(plan.Waiting),
	}
}

// unmetState explains why bundles of a request are not planned for. The code is that of unmet demand.
func (a *attribution) unmetState(
	s *search.RestRequest,
	missing, asked int64,
	given []int64,
) (raydemand.RequestState, model.Reason) {
	rest := s.Refused()
	if len(rest) == 0 {
		rest = s.Requests
	}
	items := a.Items(rest)
	// Report the impossible bundles first: waiting does not help them.
	slices.SortStableFunc(
		items,
		func(x, y *vector.Item) int { return vector.CompareBool(a.Possible(x), a.Possible(y)) },
	)
	reason := a.UnmetReason(items, given, "")
	if s.AllOrNothing && asked > 1 && reason.Code != model.Impossible {
		reason.Message = fmt.Sprintf("needs all %d bundles at once: %s", asked, reason.Message)
	} else if missing < asked {
		reason.Message = fmt.Sprintf("%d of %s: %s", missing, phrase.Plural(asked, "bundle"), reason.Message)
	}
	if reason.Code == model.Impossible {
		return raydemand.RequestImpossible, reason
	}
	return raydemand.RequestCapped, reason
}

// tally counts what one request uses.
type tally struct {
	*search.Search
	joined, waiting, planned int64
	groups                   map[int]*model.RequestGroup
	seen                     map[int]bool // nodes by number
	pods                     []string
}

// take takes n bundles from the first placements and returns the placements with bundles left.
func (t *tally) take(from []placing.Placement, n int64) []placing.Placement {
	for n > 0 && len(from) > 0 {
		at := &from[0]
		bundles := min(n, at.Each*at.Count-at.Used)
		t.add(at, at.Used/at.Each, (at.Used+bundles-1)/at.Each+1, bundles)
		at.Used += bundles
		if n -= bundles; at.Used == at.Each*at.Count {
			from = from[1:]
		}
	}
	return from
}

// add counts bundles on the nodes of a placement from first up to end.
func (t *tally) add(at *placing.Placement, first, end, bundles int64) {
	g := t.groups[at.Group]
	if g == nil {
		g = &model.RequestGroup{}
		if at.Group != fleet.HeadGroup {
			g.Name = t.Fleet.Groups[at.Group].Name
		}
		t.groups[at.Group] = g
	}
	onWay := at.Phase == fleet.OnTheWay
	switch {
	case !onWay:
		t.joined += bundles
	case at.Planned:
		t.waiting += bundles
		t.planned += bundles
	default:
		t.waiting += bundles
	}
	if at.Members == nil {
		g.Pods += end - first
		g.Waiting += end - first
		return
	}
	for _, number := range at.Members[first:end] {
		if t.seen[number] {
			continue
		}
		t.seen[number] = true
		g.Pods++
		n := &t.Nodes[number]
		if onWay {
			g.Waiting++
			if n.Since.After(g.Since) {
				g.Since = n.Since
			}
		}
		if !n.Expected {
			t.pods = append(t.pods, n.Pod)
		}
	}
}

// rows returns the groups by name. A request with several kinds of bundles may count a pod without a name more than
// once, so rows limits those pods to the number that is planned or missing.
func (t *tally) rows(given []int64) []model.RequestGroup {
	var rows []model.RequestGroup
	for i, g := range t.groups {
		if i != fleet.HeadGroup {
			named := int64(0)
			for number := range t.seen {
				if t.Nodes[number].GroupIndex == i {
					named++
				}
			}
			surplus := max(g.Pods-named-given[i]-t.Fleet.Groups[i].Missing, 0)
			g.Pods -= surplus
			g.Waiting -= surplus
		}
		rows = append(rows, *g)
	}
	slices.SortFunc(rows, func(a, b model.RequestGroup) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// names returns the first pods by name.
func (t *tally) names() []string {
	slices.Sort(t.pods)
	return t.pods[:min(len(t.pods), model.MaxRequestPods)]
}
