package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Bounds on how often it is tried whether requests can be had together. A try places all of them once; work counts
// looks of one item at one node class, as that of a search does. What is left when they are spent is admitted one by
// one (eachFrom).
const (
	minAdmissions = 8
	maxAdmissions = 512
	admissionWork = 8 * maxWork
	// lastAdmissions are kept for finding how much of what was admitted one by one can be had together.
	lastAdmissions = 12
)

// admitting finds how much of the requests over REST can be had, in the order in which they are served.
type admitting struct {
	*Search
	tries int
	// full are the kinds of bundles of which not a single one more can be had: there is never more room than before.
	// Nothing is noted of what was not weighed to its end.
	full map[string]bool
	// failed are requests that want all or nothing and cannot be had.
	failed map[string]bool
	// eachWork bounds the looks while they are admitted one by one.
	eachWork int64
}

func (p *Search) newAdmitting() *admitting {
	return &admitting{
		Search:   p,
		tries:    p.admissions(),
		full:     map[string]bool{},
		failed:   map[string]bool{},
		eachWork: eachWork,
	}
}

// admitAll decides how much of each request is planned for:
//
//	while all of the next requests can be had, they are
//	of the first that cannot be had whole: nothing if it wants all or nothing, else as many bundles of each kind as can be had
//	and so on with those behind it, which may be smaller or ask for something else
func (a *admitting) admitAll() {
	a.none()
	at := 0
	for ; at < len(a.RestRequests) && a.tries > 0; at++ {
		if a.hopeless(&a.RestRequests[at]) {
			continue
		}
		at += a.whole(at)
		if at < len(a.RestRequests) && !a.part(&a.RestRequests[at]) {
			break // it was not weighed to its end
		}
	}
	if at < len(a.RestRequests) {
		a.eachFrom(at)
	}
	a.Claims[a.RestClaim].Items = a.Coarsen(a.restItems())
}

// none plans for nothing of any request.
func (a *admitting) none() {
	for i := range a.RestRequests {
		a.RestRequests[i].None()
	}
}

func (p *Search) admissions() int {
	work := (p.itemCount() + 1) * (len(p.totals) + len(p.Groups) + 1)
	return min(max(admissionWork/work, minAdmissions), maxAdmissions)
}

// fits reports whether all that is planned for now can be had, placed as a round does.
func (a *admitting) fits() bool {
	if a.tries == 0 {
		return false
	}
	a.tries--
	a.Claims[a.RestClaim].Items = a.Coarsen(a.restItems())
	none := make([]int64, len(a.Groups))
	l, out := a.before(none)
	return a.placeClaim(l, a.Claims[a.RestClaim], none, &out) == nil
}

// before places what comes before the requests, as a round does.
func (a *admitting) before(none []int64) (*placing.Ledger, Outcome) {
	l := a.Open(a.Base, none)
	l.How = placing.Fullest
	a.LaunchMinimum(l, none)
	out := Outcome{Used: make([]bool, len(a.Nodes))}
	for _, c := range a.Claims[:a.RestClaim] {
		a.placeClaim(l, c, none, &out)
	}
	return l, out
}

// claimLedger is the ledger that the requests are placed on after that.
func (a *admitting) claimLedger() *placing.Ledger {
	none := make([]int64, len(a.Groups))
	l, _ := a.before(none)
	return a.claimOn(l, none)
}

// whole plans for as many requests as can be had whole, from one on, and returns how many.
func (a *admitting) whole(from int) int {
	rest := a.RestRequests[from:]
	n, growing := 0, true
	for step := 1; step > 0 && n < len(rest); {
		more := min(step, len(rest)-n)
		for i := range more {
			rest[n+i].all()
		}
		if a.fits() {
			n += more
		} else {
			for i := range more {
				rest[n+i].None()
			}
			growing = false
		}
		if growing {
			step *= 2
		} else {
			step /= 2
		}
	}
	return n
}

// part plans for what can be had of a request that cannot be had whole. It returns false where the tries are spent
// before that is known: what is planned for then can be had, and more of it perhaps.
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
	for i, it := range s.Items {
		if a.full[it.Key] {
			continue
		}
		least, most := int64(0), it.Request.Count
		for least < most && a.tries > 0 {
			s.Admitted[i] = least + (most-least+1)/2
			if a.fits() {
				least = s.Admitted[i]
			} else {
				most = s.Admitted[i] - 1
			}
		}
		if s.Admitted[i] = least; least < most {
			return false
		}
		a.full[it.Key] = least < it.Request.Count
	}
	return true
}

// hopeless reports whether it is known already that nothing of a request can be had.
func (a *admitting) hopeless(s *RestRequest) bool {
	full := func(it *vector.Item) bool { return a.full[it.Key] }
	if s.AllOrNothing {
		return slices.ContainsFunc(s.Items, full) || a.failed[s.key()]
	}
	return !slices.ContainsFunc(s.Items, func(it *vector.Item) bool { return !full(it) })
}

// Where requests are so many that trying all of them together, again and again, would take too long, the rest is
// admitted one by one: each as far as it finds room beside those before it, which are not moved any more. That takes
// one look at each. How much of it can be had when all is placed together, as a plan does, is found last.

// eachWork bounds the looks of one item at one node class while requests are admitted one by one.
const eachWork = 4 * admissionWork

// eachFrom admits the requests from one on, one by one, beside what is planned for already: a part of the first may be.
// Those that the bound leaves are told as not weighed.
func (a *admitting) eachFrom(from int) {
	rest := a.RestRequests[from:]
	before := countsOf(rest)
	l := a.claimLedger()
	a.Place(l, a.NewBatch(OverREST, a.restItems(), placing.Fullest))
	end := a.Looks + a.eachWork
	for i := range rest {
		a.BreakOff()
		s := &rest[i]
		if s.Unweighed = a.Looks > end; s.Unweighed || a.hopeless(s) {
			continue
		}
		l = a.one(l, s)
	}
	a.confirm(rest, before)
}

// countsOf copies how many bundles of each request are planned for.
func countsOf(shares []RestRequest) [][]int64 {
	counts := make([][]int64, len(shares))
	for i := range shares {
		counts[i] = slices.Clone(shares[i].Admitted)
	}
	return counts
}

// one admits as much more of a request as finds room on a ledger, and returns the ledger with it.
func (a *admitting) one(l *placing.Ledger, s *RestRequest) *placing.Ledger {
	trial := a.Trial(l)
	b := a.NewBatch(OverREST, s.Items, placing.Fullest)
	for i, it := range s.Items {
		switch {
		case it.Trivial():
			s.Admitted[i] = it.Request.Count
		case a.full[it.Key]:
			b.Left[i] = 0
		default:
			b.Left[i] = it.Request.Count - s.Admitted[i]
			s.Admitted[i] = it.Request.Count
		}
	}
	a.Place(trial, b)
	for i, it := range s.Items {
		s.Admitted[i] -= b.Left[i]
		a.full[it.Key] = a.full[it.Key] || b.Left[i] > 0 && !s.AllOrNothing
	}
	if s.AllOrNothing && !b.Served() {
		s.None()
		a.failed[s.key()] = true
		a.Release(trial)
		return l
	}
	a.Release(l)
	return trial
}

// confirm keeps of what was admitted one by one the first requests that can be had together, and of the others what was
// planned for before.
func (a *admitting) confirm(rest []RestRequest, before [][]int64) {
	a.tries = lastAdmissions
	if a.fits() {
		return
	}
	found := countsOf(rest)
	keep := func(n int) {
		for i := range rest {
			if copy(rest[i].Admitted, before[i]); i < n {
				copy(rest[i].Admitted, found[i])
			}
		}
	}
	least, most := 0, len(rest)
	for least < most {
		middle := least + (most-least+1)/2
		if keep(middle); a.fits() {
			least = middle
		} else {
			most = middle - 1
		}
	}
	keep(least)
	for i := range rest {
		s := &rest[i]
		s.Unweighed = s.Unweighed || !slices.Equal(s.Admitted, found[i])
	}
}
