package search

import (
	"heliostat.dev/heliostat/pkg/raydemand"
)

// REST requests add up: the plain request, which has no owner, and those of owners. They are planned as one claim with
// equal shapes merged, so the cost of a plan does not depend on the number of owners. Owners matter only if a limit
// prevents that claim: then it is admitted request by request, in the order of SortOwned (admit.go), and what is not
// admitted becomes a claim of its own that launches nothing.

// settleRest settles everything, with all REST requests if they can be served, or else with those that are admitted.
func (p *Search) settleRest() ([]int64, Outcome) {
	none := make([]int64, len(p.Groups))
	given, out := p.settle(none)
	if !p.Owned() || p.Launches(p.RestClaim, &out) {
		return given, out
	}
	return p.settleWith(p.newAdmitting())
}

// settleWith settles everything with the admitted part of the REST requests.
func (p *Search) settleWith(a *admitting) ([]int64, Outcome) {
	p.Steps = 0
	a.admitAll()
	p.refuse()
	return p.settle(make([]int64, len(p.Groups)))
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
	p.Claims[p.RestClaim].keeps = p.Coarsen(p.Items(capped))
	for _, requests := range [][]raydemand.Request{capped, impossible} {
		if items := p.Items(requests); len(items) > 0 {
			p.Claims = append(p.Claims, Claim{Purpose: OverREST, Items: items, Refused: true})
		}
	}
}
