package search

import (
	"slices"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// What is requested over REST adds up: the plain request, which is nobody's, and those of owners. It is planned as one
// claim, equal shapes merged, so a plan costs the same for any owner. Only where a limit keeps that claim from being
// had does it matter whose it is: then it is admitted request by request, in the order of SortOwned (admit.go), and
// what is not admitted is a claim of its own that launches nothing.

// settleRest settles everything, with all that is requested over REST where that can be had, and else with what is
// admitted of it.
func (p *Search) settleRest() ([]int64, Outcome) {
	none := make([]int64, len(p.Groups))
	given, out := p.settle(none)
	if !p.Owned() || !slices.Contains(out.Claims, p.RestClaim) {
		return given, out
	}
	return p.settleWith(p.newAdmitting())
}

// settleWith settles everything with what is admitted of all that is requested over REST.
func (p *Search) settleWith(a *admitting) ([]int64, Outcome) {
	p.Steps = 0
	a.admitAll()
	p.refuse()
	return p.settle(make([]int64, len(p.Groups)))
}

// refuse makes claims of what is not admitted: what no group could ever serve is kept apart from what a limit prevents.
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
