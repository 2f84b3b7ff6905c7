package search

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

// RestRequest is one request over REST.
type RestRequest struct {
	raydemand.Owned
	// Plain: the one without an owner; it is all or nothing, as Ray's is.
	Plain bool
	Items []*vector.Item
	// Admitted counts the bundles of each item that are planned for; kinds are the items' places in planning.kinds.
	Admitted []int64
	kinds    []int
	// Unweighed: weighing it was cut short, so what it does not have it might have had.
	Unweighed bool
}

// all plans for everything, none for nothing.
func (s *RestRequest) all() {
	for i, it := range s.Items {
		s.Admitted[i] = it.Request.Count
	}
}

func (s *RestRequest) None() { clear(s.Admitted) }

// Refused lists the bundles that are not planned for.
func (s *RestRequest) Refused() []raydemand.Request {
	var rest []raydemand.Request
	for i, it := range s.Items {
		request := it.Request
		if request.Count -= s.Admitted[i]; request.Count > 0 {
			rest = append(rest, request)
		}
	}
	return rest
}

// newRestRequests lists the requests over REST in the order in which they are served.
func newRestRequests(r *fleet.Fleet, s *model.Snapshot) (all []RestRequest) {
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
	// The plain request has no age: it goes before all of its priority.
	slices.SortStableFunc(all, func(a, b RestRequest) int { return cmp.Compare(b.Priority, a.Priority) })
	return all
}

// settleKinds lists the different bundles that requests over REST ask for, largest first. They are read once: trials add up counts of them alone.
func (p *Search) settleKinds() {
	var requests []raydemand.Request
	for i := range p.RestRequests {
		requests = append(requests, p.RestRequests[i].Requests...)
	}
	p.kinds = p.Items(requests)
	places := make(map[string]int, len(p.kinds))
	for i, it := range p.kinds {
		places[it.Key] = i
	}
	for i := range p.RestRequests {
		s := &p.RestRequests[i]
		s.kinds = make([]int, len(s.Items))
		for k, it := range s.Items {
			s.kinds[k] = places[it.Key]
		}
	}
}

// addTo adds what is planned for of a share to the counts of kinds.
func (s *RestRequest) addTo(counts []int64) {
	for k, had := range s.Admitted {
		at := s.kinds[k]
		counts[at] = min(counts[at]+had, vector.MaxCount)
	}
}

// ofKinds makes an item of each kind that is counted.
func (p *Search) ofKinds(counts []int64) []*vector.Item {
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

// restItems merges what is planned for of all shares.
func (p *Search) restItems() []*vector.Item {
	counts := make([]int64, len(p.kinds))
	for i := range p.RestRequests {
		p.RestRequests[i].addTo(counts)
	}
	return p.ofKinds(counts)
}

// Owned reports whether anybody asks in his own name.
func (p *Search) Owned() bool {
	return slices.ContainsFunc(p.RestRequests, func(s RestRequest) bool { return !s.Plain })
}

// settleRest settles everything, with all that is requested over REST where that can be had, and else with what is admitted of it.
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

// refuse makes claims of what is not admitted: what no group could ever serve is told apart from what a limit keeps.
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

// keepFor keeps the nodes that would serve what is not admitted, if they were enough: they are there, and letting go of half of what was
// asked for helps nobody. Nothing is launched for it.
func (p *Search) keepFor(own *placing.Ledger, c *Claim, out *Outcome) {
	if len(c.keeps) == 0 {
		return
	}
	kept := p.Trial(own)
	clear(kept.Room)
	kept.Spare = 0
	p.Place(kept, p.NewBatch(c.Purpose, c.keeps, kept.How))
	out.markUsed(kept)
	p.Release(kept)
}
