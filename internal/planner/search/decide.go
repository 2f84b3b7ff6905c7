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
	var spent int64
	beside := besideOf(s)
	level := 0
	for readings := int64(1); ; readings++ {
		budget := beside.budgetOf(policy.Work, readings)
		r := fleet.New(s)
		r.Limit(budget, level)
		p = newSearch(r, s, policy)
		p.level, p.budget, p.Stop = level, onLevel(budget, level), stop
		p.MostLooks = p.allowance(level)
		spent += beside.read
		if placing.UnlessTooMuchWork(func() { given, out = p.decide() }) {
			p.Looks, p.MostLooks = p.Looks+spent+beside.report, 0
			return p, given, out
		}
		spent += p.Looks
		level = beside.after(level, policy.Work-spent)
	}
}

func (p *Search) decide() (given []int64, out Outcome) {
	given, out = p.capInFlight(p.settleRest())
	given, out = p.warm(given, out)
	p.addUnplaceable(&out)
	out.shareAmongIdentical()
	p.refine(&out)
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
	requests, within, overREST := r.Items(s.Requests), r.Items(s.Constraint), p.restItems()
	r.Divide(len(requests), []int{len(within), len(overREST)}, fleet.CountDistinct(p.Gangs))
	r.DeferMany(p.Gangs)
	p.Requests = r.Similar(requests)
	for _, call := range []Claim{{Purpose: "request_resources", Items: within}, {Purpose: OverREST, Items: overREST}} {
		if call.Items = r.Coarsen(call.Items); len(call.Items) > 0 {
			p.RestClaim = len(p.Claims)
			p.Claims = append(p.Claims, call)
		}
	}
	p.Warm = newWarm(r, s)
	if s.Warm != nil {
		p.WarmPolicy = s.Warm.Policy
	}
	waiting := len(p.Requests)+len(p.Claims)+len(p.Gangs)+len(p.Warm) > 0
	if waiting {
		p.Base = p.OpenLedger(false, r.MarkHolders(p.Gangs))
		p.placeable = p.gangsWithPlaces()
		p.distinctGangs = fleet.CountDistinct(p.placeable)
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
	return p
}
