package place

import (
	"heliostat.dev/heliostat/internal/planner/model"
)

// Decide makes the decision. It returns the search, the pods to launch by group, and what they serve. It panics with
// brokenOff soon after stop is closed; nil is never closed.
func Decide(stop <-chan struct{}, s *model.Snapshot, policy model.Policy) (p *Search, given []int64, out Outcome) {
	s = s.WithMoving()
	beside := besidePlanning(s)
	budget := budgetOf(policy.Work, beside)
	r := NewFleet(s)
	r.limit(budget)
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
	p.Fleet = p.withoutIdle(out.Used, given)
	return given, out
}

func newSearch(r *Fleet, s *model.Snapshot, policy model.Policy) *Search {
	p := &Search{Fleet: r, Policy: policy, Gangs: r.newGangs(s.Gangs)}
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
		p.Base = p.openLedger(false, r.markHolders(p.Gangs))
		p.placeable = p.gangsWithPlaces()
		p.deferMany(within.Items)
		p.distinctGangs = countDistinct(p.placeable)
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
	p.Costs = newCosts(r, p.eachItem)
	if !waiting {
		return p // no one uses the free amounts
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Stop == "" && p.overdue(n) {
			p.overdueNodes = append(p.overdueNodes, i)
		}
	}
	p.totals = p.Base
	if len(p.Claims) > 0 {
		p.totals = p.openLedger(true, nil)
	}
	p.Base = p.hold(p.aside, p.Base)
	for i := range p.Claims {
		p.Claims[i].totals = p.hold(p.Claims[i].aside, p.totals)
	}
	for i := range p.RestRequests {
		s := &p.RestRequests[i]
		for k, it := range s.Items {
			kind := p.kinds[s.kinds[k]]
			it.aside, it.Deferred = kind.aside, kind.Deferred
		}
	}
	return p
}
