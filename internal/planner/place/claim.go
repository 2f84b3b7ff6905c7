package place

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// OverREST is the purpose of a call that was made over REST, not from within Ray.
const OverREST = "request_resources over REST"

// Claim is one call of request_resources: the cluster keeps at least this much in total.
type Claim struct {
	Purpose string
	Items   []*Item
	// aside are the items that are too many for this plan, and totals is what they leave of what exists, in use or not.
	aside  []*Item
	totals []NodeClass
	// Refused: a limit prevents it, so it is not planned for.
	Refused bool
	// keeps are additional bundles that keep nodes but launch none.
	keeps []*Item
}

func (c *Claim) counts() []int64 {
	counts := make([]int64, len(c.Items))
	for i, it := range c.Items {
		counts[i] = it.Request.Count
	}
	return counts
}

// servedBut reports whether nothing is left of a claim but what is deferred.
func (c *Claim) servedBut(left []int64) bool {
	for i, n := range left {
		if n > 0 && !c.Items[i].Deferred {
			return false
		}
	}
	return true
}

// Launches reports whether pods are launched for a claim: all of it is served but what is deferred.
func (p *Search) Launches(i int, out *Outcome) bool {
	return p.Claims[i].servedBut(out.LeftOf(i, p.Claims[i]))
}

// UnservedOf lists the items of a claim that is not served: all of them but those that are deferred.
func (p *Search) UnservedOf(i int, out *Outcome) []*Item {
	if p.Launches(i, out) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Claims[i].Items), func(it *Item) bool { return it.Deferred })
}

// RestRequest is one request over REST.
type RestRequest struct {
	raydemand.Owned
	// Plain marks the request without an owner. It is all or nothing, like Ray's.
	Plain bool
	Items []*Item
	// Admitted counts the planned bundles of each item; kinds are the items' indexes in Search.kinds.
	Admitted []int64
	kinds    []int
	// Unevaluated: its evaluation did not finish, so it could have been served more.
	Unevaluated bool
}

// all plans for everything, none for nothing.
func (s *RestRequest) all() {
	for i, it := range s.Items {
		s.Admitted[i] = it.Request.Count
	}
}

func (s *RestRequest) None() { clear(s.Admitted) }

// Refused lists the bundles that are not planned for, without those that are deferred.
func (s *RestRequest) Refused() []raydemand.Request {
	var rest []raydemand.Request
	for i, it := range s.Items {
		request := it.Request
		if request.Count -= s.Admitted[i]; request.Count > 0 && !it.Deferred {
			rest = append(rest, request)
		}
	}
	return rest
}

// newRestRequests lists the REST requests in the order in which they are served.
func newRestRequests(r *Fleet, s *model.Snapshot) (all []RestRequest) {
	add := func(of raydemand.Owned, plain bool) {
		made := RestRequest{Owned: of, Plain: plain, Items: r.Items(of.Requests)}
		if len(made.Items) > 0 {
			made.Admitted = make([]int64, len(made.Items))
			made.all()
			all = append(all, made)
		}
	}
	if len(s.KeptResources) > 0 {
		add(raydemand.Owned{AllOrNothing: true, Requests: s.KeptResources}, true)
	}
	owned := slices.Clone(s.OwnedRequests)
	raydemand.SortOwned(owned)
	for _, of := range owned {
		add(of, false)
	}
	// The plain request has no age: it comes before all others of its priority.
	slices.SortStableFunc(all, func(a, b RestRequest) int { return cmp.Compare(b.Priority, a.Priority) })
	return all
}

// addTo adds the planned part of a request to the counts of kinds.
func (s *RestRequest) addTo(counts []int64) {
	for k, had := range s.Admitted {
		at := s.kinds[k]
		counts[at] = min(counts[at]+had, MaxCount)
	}
}

// key is equal for requests that ask for the same.
func (s *RestRequest) key() string {
	var key []byte
	for _, it := range s.Items {
		key = fmt.Appendf(key, "%d × %q;", it.Request.Count, it.Key)
	}
	return string(key)
}

func (s *RestRequest) satisfied() bool { return !s.SatisfiedSince.IsZero() }

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
		if !p.owned() || p.Launches(p.RestClaim, &out) {
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
