package search

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// REST requests add up: the plain request, which has no owner, and those of owners. They are planned as one claim with
// equal shapes merged, so the cost of a plan does not depend on the number of owners. Owners matter only if a limit
// prevents that claim: then it is admitted request by request, in the order of SortOwned (admit.go), and what is not
// admitted becomes a claim of its own that launches nothing.

// settleRest settles everything, with all REST requests if they can be served, or else with those that are admitted.
//
// Admission launches for the demand before the requests as a round does, and the plan that is settled may serve that
// demand with fewer pods. Under a limit, what it saves can be room for more of the requests. The next plan would find
// it, so they are admitted again beside what is launched, until nothing is added.
func (p *Search) settleRest() ([]int64, Outcome) {
	given := make([]int64, len(p.Groups))
	for rounds := maxRounds; ; rounds-- {
		whole, out := p.settle(given)
		if !p.Owned() || p.Launches(p.RestClaim, &out) {
			return whole, out
		}
		next, out := p.settleWith(p.newAdmitting(given))
		if slices.Equal(next, given) || rounds == 0 || p.tired() {
			return next, out
		}
		given = next
		p.Steps = 0
		p.askAll()
	}
}

// settleWith settles everything with the admitted part of the REST requests.
func (p *Search) settleWith(a *admitting) ([]int64, Outcome) {
	p.Steps = 0
	a.admitAll()
	p.refuse()
	return p.settle(a.given)
}

// askAll plans for all REST requests again.
func (p *Search) askAll() {
	for i := range p.RestRequests {
		p.RestRequests[i].all()
		p.RestRequests[i].Unevaluated = false
	}
	p.Claims = p.Claims[:p.RestClaim+1]
	p.Claims[p.RestClaim].Items, p.Claims[p.RestClaim].keeps = p.restItems(), nil
}

// refuse makes claims of what is not admitted. It separates what no group could ever serve from what a limit prevents.
func (p *Search) refuse() {
	var capped, impossible []raydemand.Request
	for i := range p.RestRequests {
		for _, request := range p.RestRequests[i].Refused() {
			if it := p.Items([]raydemand.Request{request}); len(it) == 1 && !p.Possible(it[0]) {
				impossible = append(impossible, request)
			} else {
				capped = append(capped, request)
			}
		}
	}
	p.Claims[p.RestClaim].keeps = p.Items(capped)
	for _, requests := range [][]raydemand.Request{capped, impossible} {
		if items := p.Items(requests); len(items) > 0 {
			p.Claims = append(p.Claims, Claim{Purpose: OverREST, Items: items, Refused: true})
		}
	}
}
