// Package search finds the launches that serve the demand of one snapshot best: the order in which demand is placed,
// the preferences that are tried and how plans are compared (preferences.go), and the budget of work. It must not write
// sentences: package why explains a plan from its Outcome.
package search

import (
	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
)

// Decide makes the decision. It returns the search, the pods to launch by group, and what they serve. It panics with
// brokenOff soon after stop is closed; nil is never closed.
func Decide(stop <-chan struct{}, s *model.Snapshot, policy model.Policy) (p *Search, given []int64, out Outcome) {
	s = s.WithMoving()
	beside := besidePlanning(s)
	budget := budgetOf(policy.Work, beside)
	r := fleet.New(s)
	r.Limit(budget)
	p = newSearch(r, s, policy)
	p.budget, p.Stop = budget, stop
	given, out = p.decide()
	p.Looks += beside
	return p, given, out
}

func (p *Search) decide() (given []int64, out Outcome) {
	given, out = p.capInFlight(p.settleRest())
	given, out = p.warm(given, out)
	p.addUnplanned(&out)
	out.shareAmongIdentical()
	p.keepUntilReplaced(&out)
	given = p.try(given, &out)
	p.keepForDeferred(&out)
	p.keepWarm(&out)
	p.Fleet = p.WithoutIdle(out.Used, given)
	return given, out
}

func newSearch(r *fleet.Fleet, s *model.Snapshot, policy model.Policy) *Search {
	p := &Search{Placer: &placing.Placer{Fleet: r, Policy: policy}, Gangs: r.NewGangs(s.Gangs)}
	p.RestRequests = newRestRequests(r, s)
	p.settleKinds()
	p.Requests = r.Items(s.Requests)
	within := Claim{Purpose: "request_resources", Items: r.Items(s.Constraint)}
	p.Warm = newWarm(r, s)
	if s.Warm != nil {
		p.WarmPolicy = s.Warm.Policy
	}
	waiting := len(p.Requests)+len(within.Items)+len(p.kinds)+len(p.Gangs)+len(p.Warm) > 0
	if waiting {
		p.Base = p.OpenLedger(false, r.MarkHolders(p.Gangs))
		p.placeable = p.gangsWithPlaces()
		p.deferMany(within.Items)
		p.distinctGangs = fleet.CountDistinct(p.placeable)
	}
	overREST := Claim{Purpose: OverREST, Items: p.restItems()}
	p.Requests, p.aside = parted(p.Requests)
	within.Items, within.aside = parted(within.Items)
	_, overREST.aside = parted(p.kinds)
	for _, call := range []Claim{within, overREST} {
		if len(call.Items)+len(call.aside) > 0 {
			p.RestClaim = len(p.Claims)
			p.Claims = append(p.Claims, call)
		}
	}
	p.Costs = cost.New(r, p.eachItem)
	if !waiting {
		return p // no one uses the free amounts
	}
	for i := range p.Base {
		if p.Base[i].Phase == fleet.Overdue {
			p.overdueNodes = append(p.overdueNodes, p.Base[i].Members...)
		}
	}
	p.totals = p.Base
	if len(p.Claims) > 0 {
		p.totals = p.OpenLedger(true, nil)
	}
	p.Base = p.hold(p.aside, p.Base)
	for i := range p.Claims {
		p.Claims[i].totals = p.hold(p.Claims[i].aside, p.totals)
	}
	for i := range p.RestRequests {
		s := &p.RestRequests[i]
		for k, it := range s.Items {
			kind := p.kinds[s.kinds[k]]
			it.Aside, it.Deferred = kind.Aside, kind.Deferred
		}
	}
	return p
}
