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
	// Unevaluated: its evaluation did not finish, so it could have been served more.
	Unevaluated bool
}

// Evaluated reports whether the plan found out how much of the request can be served.
func (s *RestRequest) Evaluated() bool { return !s.Unevaluated }

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
// prevents that claim: then it is admitted request by request, in the order of SortOwned (admitAll), and what is not
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
		next, out := p.settleWith(p.newAdmitting(given))
		if slices.Equal(next, given) || again == 0 {
			return next, out
		}
		given = next
		p.askAll()
	}
}

// settleWith settles everything with the admitted part of the REST requests.
func (p *Search) settleWith(a *admitting) ([]int64, Outcome) {
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

// Bounds on the number of trials that test whether requests can be served together. A trial places all of them once;
// work counts looks of one item at one node class, as in a search. When the bounds are reached, the rest is not
// evaluated.
const (
	minAdmissions = 8
	maxAdmissions = 2048
	admissionWork = 8 * maxWork
)

// admitting finds how much of the REST requests can be served, in the order in which they are served.
type admitting struct {
	*Search
	// given are the pods that are planned already, by group. They count as existing, as they will in the next plan.
	given []int64
	tries int
	// full are the kinds of bundles of which not even one more can be served: there is never more room later than
	// earlier. It records only completed trials.
	full map[string]bool
	// failed are all-or-nothing requests that cannot be served.
	failed map[string]bool
}

func (p *Search) newAdmitting(given []int64) *admitting {
	work := (p.itemCount() + 1) * (len(p.totals) + len(p.Groups) + 1)
	a := &admitting{
		Search: p,
		given:  given,
		tries:  min(max(admissionWork/work, minAdmissions), maxAdmissions),
		full:   map[string]bool{},
		failed: map[string]bool{},
	}
	for _, it := range p.kinds {
		if !p.Possible(it) { // no trial can find room for it
			a.full[it.Key] = true
		}
	}
	return a
}

// admitAll decides how much of each request is planned for:
//
//	while all of the next requests can be served, they are
//	of the first that cannot be served whole: nothing if it is all or nothing, else as many bundles of each kind as
//	fit
//	and so on with the requests after it, which may be smaller or ask for something else
func (a *admitting) admitAll() {
	a.none()
	at := 0
	for ; at < len(a.RestRequests) && a.tries > 0; at++ {
		if a.hopeless(&a.RestRequests[at]) {
			continue
		}
		at += a.whole(at)
		if at < len(a.RestRequests) && !a.part(&a.RestRequests[at]) {
			break // the evaluation did not finish
		}
	}
	for ; at < len(a.RestRequests); at++ {
		s := &a.RestRequests[at]
		s.Unevaluated = !a.hopeless(s)
	}
	a.Claims[a.RestClaim].Items = a.restItems()
}

// none plans for nothing of any request.
func (a *admitting) none() {
	for i := range a.RestRequests {
		a.RestRequests[i].None()
		a.RestRequests[i].Unevaluated = false
	}
}

// fits reports whether everything that is planned for now can be served, placed as a round does.
func (a *admitting) fits() bool {
	if a.tries == 0 {
		return false
	}
	a.tries--
	a.Claims[a.RestClaim].Items = a.restItems()
	l, out := a.before()
	return a.placeClaim(l, a.Claims[a.RestClaim], a.given, &out) == nil
}

// before places the demand that comes before the requests, as a round does.
func (a *admitting) before() (*Ledger, Outcome) {
	l := a.open(a.Base, a.given)
	l.how = fullest
	a.launchMinimum(l, a.given)
	out := Outcome{Stays: make([]Stay, len(a.Nodes))}
	for _, c := range a.Claims[:a.RestClaim] {
		a.placeClaim(l, c, a.given, &out)
	}
	return l, out
}

// whole plans for as many whole requests as can be served, starting at one, and returns their number.
func (a *admitting) whole(from int) int {
	rest := a.RestRequests[from:]
	plan := func(n int64) {
		for i := range rest {
			if rest[i].None(); int64(i) < n {
				rest[i].all()
			}
		}
	}
	n := mostThat(int64(len(rest)), func(n int64) bool {
		plan(n)
		return a.fits()
	})
	plan(n)
	return int(n)
}

// part plans for the part that can be served of a request that cannot be served whole. It returns false if the trials
// ended first: then what is planned for can be served, and perhaps more of it.
func (a *admitting) part(s *RestRequest) bool {
	if a.tries == 0 {
		return false
	}
	if s.AllOrNothing {
		a.failed[s.key()] = true
		if len(s.Items) == 1 && s.Items[0].Request.Count == 1 {
			a.full[s.Items[0].Key] = true
		}
		return true
	}
	// One request uses at most half of the trials that are left, so that those after it are evaluated too.
	rest := a.tries / 2
	for i, it := range s.Items {
		if a.full[it.Key] {
			continue
		}
		least, most := int64(0), it.Request.Count
		for least < most && a.tries > rest { // also few tries come close
			s.Admitted[i] = least + (most-least+1)/2
			if a.fits() {
				least = s.Admitted[i]
			} else {
				most = s.Admitted[i] - 1
			}
		}
		if s.Admitted[i] = least; least < most {
			s.Unevaluated = true
			return rest > 0
		}
		a.full[it.Key] = least < it.Request.Count
	}
	return true
}

// hopeless reports whether it is already known that nothing of a request can be served.
func (a *admitting) hopeless(s *RestRequest) bool {
	full := func(it *Item) bool { return a.full[it.Key] }
	if s.AllOrNothing {
		return slices.ContainsFunc(s.Items, full) || a.failed[s.key()]
	}
	return !slices.ContainsFunc(s.Items, func(it *Item) bool { return !full(it) })
}
