// Package search finds the launches that serve the demand of one snapshot best: the order in which demand is placed,
// the preferences that are tried and how plans are compared (preferences.go), and the budget of work. It must not write
// sentences: packages reasons and report explain a plan from its Outcome.
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
	within, beyond := withinBounds(s.WithMoving())
	var spent int64
	for level := 0; ; level++ {
		r := fleet.New(within)
		r.Limit(policy.Work, level)
		p = newSearch(r, within, policy)
		p.level, p.Stop, p.Beyond, p.MostLooks = level, stop, beyond, p.allowance(level)
		if placing.UnlessTooMuchWork(func() { given, out = p.decide() }) {
			p.Looks, p.MostLooks = p.Looks+spent, 0
			return p, given, out
		}
		spent += p.Looks
	}
}

func (p *Search) decide() (given []int64, out Outcome) {
	given, out = p.capInFlight(p.settleRest())
	p.addUnplaceable(&out)
	out.shareAmongIdentical()
	p.refine(&out)
	p.keepUntilReplaced(&out)
	given = p.try(given, &out)
	p.keepForDeferred(&out)
	p.Fleet = p.WithoutIdle(out.Used, given)
	return given, out
}

func newSearch(r *fleet.Fleet, s *model.Snapshot, policy model.Policy) *Search {
	p := &Search{
		Placer:   &placing.Placer{Fleet: r, Policy: policy},
		Requests: r.Similar(r.Items(s.Requests)),
		Gangs:    r.NewGangs(s.Gangs),
	}
	p.RestRequests = newRestRequests(r, s)
	p.OwnedCount, p.OwnedShapes = len(s.OwnedRequests), ShapesOf(s.OwnedRequests)
	p.settleKinds()
	for _, call := range []Claim{
		{Purpose: "request_resources", Items: r.Items(s.Constraint)}, {Purpose: OverREST, Items: p.restItems()},
	} {
		if call.Items = r.Coarsen(call.Items); len(call.Items) > 0 {
			p.RestClaim = len(p.Claims)
			p.Claims = append(p.Claims, call)
		}
	}
	waiting := len(p.Requests)+len(p.Claims)+len(p.Gangs) > 0
	if waiting {
		p.Base = p.OpenLedger(false, r.MarkHolders(p.Gangs))
		p.placeable = p.gangsWithPlaces()
		p.distinctGangs = fleet.CountDistinct(p.placeable)
	}
	p.Costs = cost.New(r, policy, p.eachItem)
	if !waiting {
		return p // no one uses the free amounts
	}
	p.setReadiness(s)
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
