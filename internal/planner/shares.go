package planner

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// What is requested over REST adds up: the plain request, which is nobody's, and those of owners. It is planned as one claim, equal shapes
// merged, so a plan costs the same whoever asks. Only where a limit keeps that claim from being had does it matter whose it is: then it is
// admitted request by request, in the order of SortOwned (admit.go), and what is not admitted is a claim of its own that launches nothing.

// share is one request over REST.
type share struct {
	raydemand.Owned
	// plain: the one without an owner; it is all or nothing, as Ray's is.
	plain bool
	items []*vector.Item
	// had counts the bundles of each item that are planned for; kinds are the items' places in planning.kinds.
	had   []int64
	kinds []int
	// unweighed: weighing it was cut short, so what it does not have it might have had.
	unweighed bool
}

// all plans for everything, none for nothing.
func (s *share) all() {
	for i, it := range s.items {
		s.had[i] = it.Request.Count
	}
}

func (s *share) none() { clear(s.had) }

// refused lists the bundles that are not planned for.
func (s *share) refused() []raydemand.Request {
	var rest []raydemand.Request
	for i, it := range s.items {
		request := it.Request
		if request.Count -= s.had[i]; request.Count > 0 {
			rest = append(rest, request)
		}
	}
	return rest
}

// newShares lists the requests over REST in the order in which they are served.
func newShares(r *fleet.Fleet, s *model.Snapshot) (all []share) {
	add := func(of raydemand.Owned, plain bool) {
		made := share{Owned: of, plain: plain, items: r.Items(of.Requests)}
		if len(made.items) > 0 {
			made.had = make([]int64, len(made.items))
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
	// The plain request has no age: it goes before all of its priority.
	slices.SortStableFunc(all, func(a, b share) int { return cmp.Compare(b.Priority, a.Priority) })
	return all
}

// settleKinds lists the different bundles that requests over REST ask for, largest first. They are read once: trials add up counts of them alone.
func (p *planning) settleKinds() {
	var requests []raydemand.Request
	for i := range p.shares {
		requests = append(requests, p.shares[i].Requests...)
	}
	p.kinds = p.Items(requests)
	places := make(map[string]int, len(p.kinds))
	for i, it := range p.kinds {
		places[it.Key] = i
	}
	for i := range p.shares {
		s := &p.shares[i]
		s.kinds = make([]int, len(s.items))
		for k, it := range s.items {
			s.kinds[k] = places[it.Key]
		}
	}
}

// addTo adds what is planned for of a share to the counts of kinds.
func (s *share) addTo(counts []int64) {
	for k, had := range s.had {
		at := s.kinds[k]
		counts[at] = min(counts[at]+had, vector.MaxCount)
	}
}

// ofKinds makes an item of each kind that is counted.
func (p *planning) ofKinds(counts []int64) []*vector.Item {
	made := make([]vector.Item, 0, len(counts))
	var all []*vector.Item
	for i, n := range counts {
		if n > 0 {
			made = append(made, *p.kinds[i])
			it := &made[len(made)-1]
			it.Request.Count = n
			all = append(all, it)
		}
	}
	return all
}

// shareItems merges what is planned for of all shares.
func (p *planning) shareItems() []*vector.Item {
	counts := make([]int64, len(p.kinds))
	for i := range p.shares {
		p.shares[i].addTo(counts)
	}
	return p.ofKinds(counts)
}

// owned reports whether anybody asks in his own name.
func (p *planning) owned() bool {
	return slices.ContainsFunc(p.shares, func(s share) bool { return !s.plain })
}

// settleShares settles everything, with all that is requested over REST where that can be had, and else with what is admitted of it.
func (p *planning) settleShares() ([]int64, outcome) {
	none := make([]int64, len(p.Groups))
	given, out := p.settle(none)
	if !p.owned() || !slices.Contains(out.claims, p.shareClaim) {
		return given, out
	}
	return p.settleWith(p.newAdmitting())
}

// settleWith settles everything with what is admitted of all that is requested over REST.
func (p *planning) settleWith(a *admitting) ([]int64, outcome) {
	p.Steps = 0
	a.admitShares()
	p.refuse()
	return p.settle(make([]int64, len(p.Groups)))
}

// refuse makes claims of what is not admitted: what no group could ever serve is told apart from what a limit keeps.
func (p *planning) refuse() {
	var capped, impossible []raydemand.Request
	for i := range p.shares {
		for _, request := range p.shares[i].refused() {
			if it := p.Items([]raydemand.Request{request}); len(it) == 1 && !p.possible(it[0]) {
				impossible = append(impossible, request)
			} else {
				capped = append(capped, request)
			}
		}
	}
	p.claims[p.shareClaim].keeps = p.Coarsen(p.Items(capped))
	for _, requests := range [][]raydemand.Request{capped, impossible} {
		if items := p.Items(requests); len(items) > 0 {
			p.claims = append(p.claims, claim{purpose: overREST, items: items, refused: true})
		}
	}
}

// keepFor keeps the nodes that would serve what is not admitted, if they were enough: they are there, and letting go of half of what was
// asked for helps nobody. Nothing is launched for it.
func (p *planning) keepFor(own *placing.Ledger, c *claim, out *outcome) {
	if len(c.keeps) == 0 {
		return
	}
	kept := p.Trial(own)
	clear(kept.Room)
	kept.Spare = 0
	p.Place(kept, p.NewBatch(c.purpose, c.keeps, kept.How))
	out.markUsed(kept)
	p.Release(kept)
}
