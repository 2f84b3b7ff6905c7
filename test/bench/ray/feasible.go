package main

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The functions below place demand on nodes by exhaustive search, to verify that a plan can serve what it promises.
// They share nothing with a planner.

// place is a node and what is free on it.
type place struct {
	free   raydemand.Bundle
	labels map[string]string
	// holds are the gangs with a bundle here.
	holds map[string]bool
}

// piece is what must go to one place: a request's bundle, a gang's bundle, or all bundles of a gang that must share a
// place.
type piece struct {
	bundle raydemand.Bundle
	// selectors are alternatives, of which one must match; none means any place.
	selectors []raydemand.Selector
	// apart is the gang whose pieces need different places.
	apart string
}

// mostSteps bounds the search; small snapshots need a few hundred steps.
const mostSteps = 200_000

// search places pieces one after the other.
type search struct {
	pieces []piece
	places []place
	steps  int
}

// feasible reports whether everything that a plan serves fits at once on existing and launched nodes. If mostSteps are
// not enough to decide, it counts as feasible, and decided is false.
func feasible(s planner.Snapshot, a answer) (fits, decided bool) {
	fits, decided = true, true
	for _, check := range []struct {
		pieces [][]piece
		places []place
	}{
		{demanded(s, a), placesOf(s, a, func(n planner.Node) raydemand.Bundle { return n.Available })},
		{constrained(s, a), placesOf(s, a, func(n planner.Node) raydemand.Bundle { return n.Total })},
	} {
		some := false
		for _, pieces := range check.pieces {
			slices.SortStableFunc(pieces, func(x, y piece) int { return int(size(y.bundle) - size(x.bundle)) })
			run := search{pieces: pieces, places: check.places}
			some = some || run.from(0, 0)
			decided = decided && run.steps <= mostSteps
		}
		fits = fits && some
	}
	return fits || !decided, decided
}

func size(b raydemand.Bundle) (sum raydemand.Amount) {
	for _, amount := range b {
		sum += amount
	}
	return sum
}

// placesOf lists the nodes that a plan keeps, those that it launches, and those that the operator adds to replicas with
// lost hosts.
func placesOf(s planner.Snapshot, a answer, free func(planner.Node) raydemand.Bundle) []place {
	groups, hosts := map[string]planner.Group{}, map[string]int{}
	var places []place
	fresh := func(g planner.Group) place { return place{g.Resources, g.Labels, nil} }
	for _, g := range s.Groups {
		groups[g.Name] = g
		for range a.launch[g.Name] {
			places = append(places, fresh(g))
		}
	}
	if s.Head != nil {
		places = append(places, place{free(*s.Head), s.Head.Labels, nil})
	}
	for _, n := range s.Nodes {
		_, stopped := a.stop[n.Pod]
		g, known := groups[n.Group]
		if n.State != planner.AllocationTimeout {
			hosts[n.Group]++
		}
		switch {
		case stopped || !known || n.State == planner.Leaving || n.State == planner.AllocationTimeout:
		case n.State == planner.Pending:
			places = append(places, fresh(g))
		default:
			places = append(places, place{within(free(n), n.Total), n.Labels, nil})
		}
	}
	for _, g := range s.Groups {
		for range (g.NumOfHosts - hosts[g.Name]%g.NumOfHosts) % g.NumOfHosts {
			places = append(places, fresh(g))
		}
	}
	return places
}

// within limits available amounts to the total.
func within(free, total raydemand.Bundle) raydemand.Bundle {
	bounded := free.Clone()
	for name := range bounded {
		bounded[name] = min(bounded[name], total[name])
	}
	return bounded
}

// demanded lists the requests and gangs that a plan serves, once for each combination of fallbacks.
func demanded(s planner.Snapshot, a answer) [][]piece {
	ways := [][]piece{nil}
	for i, r := range s.Requests {
		if r.Bundle.IsZero() {
			continue // asks for nothing, not even a node
		}
		for range r.Count - a.unservedRequests[i] {
			ways[0] = append(ways[0], piece{bundle: r.Bundle, selectors: r.Selectors})
		}
	}
	for i, g := range s.Gangs {
		if a.unservedGangs[i] {
			continue
		}
		var more [][]piece
		for k, bundles := range append([][]raydemand.Bundle{g.Bundles}, g.Fallbacks...) {
			selectors := g.BundleSelectors
			if k > 0 {
				selectors = nil
			}
			for _, way := range ways {
				more = append(more, slices.Concat(way, piecesOf(g, bundles, selectors)))
			}
		}
		ways = more
	}
	return ways
}

// piecesOf splits a gang into pieces that each go to one place.
func piecesOf(g raydemand.Gang, bundles []raydemand.Bundle, selectors []raydemand.Selector) []piece {
	var pieces []piece
	for i, b := range bundles {
		p := piece{bundle: b}
		if len(selectors) > 0 {
			p.selectors = []raydemand.Selector{selectors[i]}
		}
		if g.Strategy == raydemand.StrictSpread {
			p.apart = g.ID
		}
		pieces = append(pieces, p)
	}
	if g.Strategy != raydemand.StrictPack {
		return pieces
	}
	whole := piece{bundle: raydemand.Bundle{}}
	for _, p := range pieces {
		whole.bundle.Add(p.bundle)
	}
	if len(selectors) > 0 {
		whole.selectors = []raydemand.Selector{joined(selectors)}
	}
	return []piece{whole}
}

// constrained lists request_resources if a plan serves it.
func constrained(s planner.Snapshot, a answer) [][]piece {
	var pieces []piece
	for _, r := range s.Constraint {
		for range r.Count {
			if !a.unservedConstraint {
				pieces = append(pieces, piece{bundle: r.Bundle, selectors: r.Selectors})
			}
		}
	}
	return [][]piece{pieces}
}

// from places the pieces from the i-th on. Equal pieces are adjacent and go to places in order: least is the first
// place for the i-th.
func (r *search) from(i, least int) bool {
	if i == len(r.pieces) {
		return true
	}
	p := r.pieces[i]
	for k := least; k < len(r.places); k++ {
		if r.steps++; r.steps > mostSteps {
			return false
		}
		before := r.places[k]
		if !before.takes(p) {
			continue
		}
		r.places[k] = before.with(p)
		next := 0
		if i+1 < len(r.pieces) && r.pieces[i+1].equal(p) {
			next = k
		}
		done := r.from(i+1, next)
		r.places[k] = before
		if done {
			return true
		}
	}
	return false
}

func (p piece) equal(other piece) bool {
	return p.apart == other.apart && p.bundle.Equal(other.bundle) &&
		slices.EqualFunc(
			p.selectors,
			other.selectors,
			func(a, b raydemand.Selector) bool { return a.String() == b.String() },
		)
}

func (at place) takes(p piece) bool {
	matches := func(s raydemand.Selector) bool { return s.Matches(at.labels) }
	return at.free.Fits(p.bundle) && !at.holds[p.apart] &&
		(len(p.selectors) == 0 || slices.ContainsFunc(p.selectors, matches))
}

func (at place) with(p piece) place {
	at.free = at.free.Clone()
	at.free.Take(p.bundle)
	if p.apart != "" {
		holds := maps.Clone(at.holds)
		if holds == nil {
			holds = map[string]bool{}
		}
		holds[p.apart] = true
		at.holds = holds
	}
	return at
}
