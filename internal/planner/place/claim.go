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
	// Delayed: all of it is planned, and the in-flight caps delay a part.
	Delayed bool
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

// Launches reports whether pods are launched for a claim: all of it is served but what is deferred.
func (p *Search) Launches(i int, out *Outcome) bool {
	for k, n := range out.LeftOf(i, p.Claims[i]) {
		if n > 0 && !p.Claims[i].Items[k].Deferred {
			return false
		}
	}
	return true
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
	// Unevaluated: no trial was left to find out how much of it can be served.
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
// prevents that claim: then it is admitted request by request, in the order of SortOwned (admit), and what is not
// admitted becomes a claim of its own that launches nothing.

// maxAdmitted limits how often requests are admitted again beside what is launched for others.
const maxAdmitted = 8

// settleRest settles everything, with all REST requests if they can be served, or else with those that are admitted.
//
// Admission launches for the demand before the requests as a round does, and the plan that is settled may serve that
// demand with fewer pods. Under a limit, what it saves can be room for more of the requests. The next plan would find
// it, so they are admitted again beside what is launched, until nothing is added.
func (p *Search) settleRest() ([]int64, Outcome) {
	given := make([]int64, len(p.Groups))
	for again := maxAdmitted; ; again-- {
		whole, out := p.settle(given)
		owned := slices.ContainsFunc(p.RestRequests, func(s RestRequest) bool { return !s.Plain })
		if !owned || p.Launches(p.RestClaim, &out) {
			return whole, out
		}
		p.admit(given)
		p.refuse()
		next, out := p.settle(given)
		if slices.Equal(next, given) || again == 0 {
			return next, out
		}
		given = next
		for i := range p.RestRequests {
			p.RestRequests[i].all()
		}
		p.Claims = p.Claims[:p.RestClaim+1]
		p.Claims[p.RestClaim].Items, p.Claims[p.RestClaim].keeps = p.restItems(), nil
	}
}

// Bounds on the number of trials that test whether requests can be served together. A trial places all of them once;
// work counts looks of one item at one node class, as in a search. What no trial was left for is not planned for.
const (
	minAdmissions = 8
	maxAdmissions = 2048
	admissionWork = 8 * maxWork
)

// admit decides how much of each REST request is planned for, beside the given pods:
//
//	while all of the next requests can be served, they are
//	of the first that cannot be served whole: nothing if it is all or nothing, else as many bundles of each kind as
//	fit
//	and so on with the requests after it, which may be smaller or ask for something else
func (p *Search) admit(given []int64) {
	claim := &p.Claims[p.RestClaim]
	work := (p.itemCount() + 1) * (len(p.totals) + len(p.Groups) + 1)
	tries := min(max(admissionWork/work, minAdmissions), maxAdmissions)
	// fits reports whether everything that is planned for now can be served, placed as a round does.
	fits := func() bool {
		if tries--; tries < 0 {
			return false
		}
		claim.Items = p.restItems()
		l, out := p.open(p.Base, given), Outcome{Stays: make([]Stay, len(p.Nodes))}
		p.launchMinimum(l, given)
		for _, c := range p.Claims[:p.RestClaim] {
			p.placeClaim(l, c, given, &out)
		}
		return p.placeClaim(l, *claim, given, &out) == nil
	}
	// full are the kinds of bundles of which not even one more can be served: there is never more room later.
	full := map[string]bool{}
	for _, it := range p.kinds {
		full[it.Key] = !p.Possible(it)
	}
	isFull := func(it *Item) bool { return full[it.Key] }
	isOpen := func(it *Item) bool { return !full[it.Key] }
	failed := map[string]bool{} // requests that are all or nothing, by key
	for i := range p.RestRequests {
		p.RestRequests[i].None()
		p.RestRequests[i].Unevaluated = false
	}
	for at := 0; at < len(p.RestRequests); at++ {
		s := &p.RestRequests[at]
		if s.AllOrNothing && (failed[s.key()] || slices.ContainsFunc(s.Items, isFull)) ||
			!slices.ContainsFunc(s.Items, isOpen) {
			continue
		}
		if s.Unevaluated = tries < 0; s.Unevaluated {
			continue
		}
		rest := p.RestRequests[at:]
		plan := func(n int64) {
			for i := range rest {
				if rest[i].None(); int64(i) < n {
					rest[i].all()
				}
			}
		}
		whole := mostThat(int64(len(rest)), func(n int64) bool {
			plan(n)
			return fits()
		})
		plan(whole)
		if at += int(whole); at == len(p.RestRequests) {
			break
		}
		s = &p.RestRequests[at]
		if s.AllOrNothing {
			s.Unevaluated = tries < 0
			failed[s.key()] = !s.Unevaluated
			continue
		}
		for i, it := range s.Items {
			if full[it.Key] {
				continue
			}
			s.Admitted[i] = mostThat(it.Request.Count, func(n int64) bool {
				s.Admitted[i] = n
				return fits()
			})
			full[it.Key] = tries >= 0 && s.Admitted[i] < it.Request.Count
		}
		s.Unevaluated = tries < 0
	}
	claim.Items = p.restItems()
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
