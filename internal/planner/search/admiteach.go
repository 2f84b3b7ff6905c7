package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/placing"
)

// Where requests are so many that trying all of them together, again and again, would take too long, the rest is admitted one by one: each as far as
// it finds room beside those before it, which are not moved any more. That takes one look at each. How much of it can be had when all is placed
// together, as a plan does, is found last.

// eachWork bounds the looks of one item at one lot while requests are admitted one by one.
const eachWork = 4 * admissionWork

// eachFrom admits the requests from one on, one by one, beside what is planned for already: a part of the first may be. Those that the bound leaves are
// told that they were not weighed.
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

// confirm keeps of what was admitted one by one the first requests that can be had together, and of the others what was planned for before.
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
