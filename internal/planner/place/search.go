package place

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Search is the search for a plan: the demand of one snapshot, and the launches that serve it best.
type Search struct {
	*Fleet
	Policy   model.Policy
	Requests []*Item
	Claims   []Claim
	Gangs    []*Gang
	// placeable are the gangs that are planned for. Each of the others is planned later, or has a bundle without any
	// place. heldRuns are those that need not be planned later, because they have room on what exists.
	placeable []*Gang
	heldRuns  []Run
	// RestRequests are the REST requests in the order in which they are served. RestClaim is the index of their claim.
	RestRequests []RestRequest
	RestClaim    int
	// aside are the requests that are too many for this plan. waits says which of them, and of those of claims, are
	// placed on pods on their way.
	aside []*Item
	waits []Placement
	// MostShapes is how many different shapes the plan takes on.
	MostShapes int
	// kinds are the different bundles of the REST requests.
	kinds []*Item
	// untouched is what is free, and what may be launched, before anything is placed; nil without gangs.
	untouched *Ledger
	// overdueNodes have been idle for too long, by number, whatever the minimum of their group keeps: what it keeps
	// changes with each launch.
	overdueNodes []int
	// Base lists what is free now, totals what exists, in use or not.
	Base, totals []NodeClass
	// Held counts, by group, the launches that the in-flight caps delay; nil if there are none.
	Held []int64
	// Warm is the warm capacity, and WarmRules say where it may be. WarmPolicy is where it is written.
	Warm       []WarmEntry
	WarmRules  WarmRules
	WarmPolicy string
	// Trials are the replicas that are launched to find out what their pods announce.
	Trials []Trial
	// Costs are the costs of launches.
	Costs Model
	// closed: nothing may be launched.
	closed bool
	// knownOnly closes the groups for whose pods no node is known.
	knownOnly bool
	// released are ledgers whose memory can be reused.
	released []*Ledger
}

// Trial is a replica that is launched to find out what its pods announce.
type Trial struct {
	group int
	Item  *Item
	Gang  *Gang // the gang that the item belongs to, if any
	// Awaited is what the pods must announce to serve it.
	Awaited []landing.Awaited
}

// allItems lists the items of the demand, once for equal gangs.
func (p *Search) allItems() []*Item {
	all := slices.Clone(p.Requests)
	for _, c := range p.Claims {
		all = append(all, c.Items...)
	}
	for k, g := range p.placeable {
		if k == 0 || g.Key != p.placeable[k-1].Key {
			all = append(all, g.Items()...)
		}
	}
	return all
}

// itemCount counts what is placed item by item.
func (p *Search) itemCount() int {
	items := len(p.Requests)
	for _, c := range p.Claims {
		items += len(c.Items)
	}
	for front := range kindsOf(p.placeable) {
		items += len(front[0].Options[0])
	}
	return items
}

// settleKinds lists the different bundles of the REST requests, largest first. They are read once, because trials only
// add up their counts.
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

// ofKinds returns an item for each kind with a count, without those that are deferred.
func (p *Search) ofKinds(counts []int64) []*Item {
	kinds := 0
	for i, n := range counts {
		if p.kinds[i].Deferred {
			counts[i] = 0
		} else if n > 0 {
			kinds++
		}
	}
	// A plan calls this hundreds of times, often for few of thousands of kinds.
	made, all := make([]Item, 0, kinds), make([]*Item, 0, kinds)
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

// restItems merges the planned parts of all REST requests, without what is set aside.
func (p *Search) restItems() []*Item {
	now, _ := parted(p.admitted())
	return now
}

// admitted merges the planned parts of all REST requests.
func (p *Search) admitted() []*Item {
	counts := make([]int64, len(p.kinds))
	for i := range p.RestRequests {
		p.RestRequests[i].addTo(counts)
	}
	return p.ofKinds(counts)
}

// Decide makes the decision. It returns the search, the pods to launch by group, and what they serve.
func Decide(s *model.Snapshot, policy model.Policy) (p *Search, given []int64, out Outcome) {
	s = s.WithMoving()
	p = newSearch(NewFleet(s), s, policy)
	given, out = p.capInFlight(p.settleRest())
	given, out = p.warm(given, out)
	p.addUnplanned(&out)
	out.shareAmongIdentical()
	p.keepUntilReplaced(&out)
	given = p.try(given, &out)
	p.keepForDeferred(&out)
	p.keepWarm(&out)
	p.stopIdle(out.Stays, given)
	out.Places = p.assignments(given)
	return p, given, out
}

func newSearch(r *Fleet, s *model.Snapshot, policy model.Policy) *Search {
	p := &Search{Fleet: r, Policy: policy, Gangs: r.newGangs(s.Gangs)}
	p.RestRequests = newRestRequests(r, s)
	p.settleKinds()
	p.Requests = r.Items(s.Requests)
	within := Claim{Purpose: "request_resources", Items: r.Items(s.Constraint)}
	p.Warm = newWarm(r, s)
	if s.Warm != nil {
		p.WarmPolicy = s.Warm.Policy
	}
	var later []*Gang
	waiting := len(p.Requests)+len(within.Items)+len(p.kinds)+len(p.Gangs)+len(p.Warm) > 0
	if waiting {
		p.Base = p.openLedger(countUnused, r.markHolders(p.Gangs))
		p.placeable = p.gangsWithPlaces()
		later = p.deferMany(within.Items)
	}
	overREST := Claim{Purpose: OverREST, Items: p.restItems()}
	p.Requests, p.aside = parted(p.Requests)
	within.Items, within.aside = parted(within.Items)
	_, overREST.aside = parted(p.kinds)
	for _, call := range []Claim{within, overREST} {
		if len(call.Items)+len(call.aside) > 0 {
			p.RestClaim = len(p.Claims)
			p.Claims = append(p.Claims, call)
		}
	}
	p.Costs = newCosts(r, p.allItems())
	if !waiting {
		return p // no one uses the free amounts
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Stop == "" && p.overdue(n) {
			p.overdueNodes = append(p.overdueNodes, i)
		}
	}
	p.totals = p.Base
	if len(p.Claims) > 0 {
		p.totals = p.openLedger(countTotals, nil)
	}
	p.Base = p.hold(p.aside, later, p.Base)
	for i := range p.Claims {
		p.Claims[i].totals = p.hold(p.Claims[i].aside, nil, p.totals)
	}
	for i := range p.RestRequests {
		s := &p.RestRequests[i]
		for k, it := range s.Items {
			kind := p.kinds[s.kinds[k]]
			it.aside, it.Deferred = kind.aside, kind.Deferred
		}
	}
	return p
}

// Possible reports whether some group, or some node that stays, could ever serve one bundle. A maximum of 0 is a limit
// like any other. Ray may cancel demand that is impossible, so demand that only a limit prevents, or that depends
// on something unknown, is never called impossible. A group whose pods no node will ever hold serves nothing.
func (p *Search) Possible(it *Item) bool {
	for i := range p.Groups {
		if len(p.Wants(i, it, nil)) > 0 {
			return true
		}
	}
	return p.Certain(it)
}

// Certain reports whether some group, or some node that stays, could serve one bundle by what is known.
func (p *Search) Certain(it *Item) bool {
	for i := range p.Groups {
		if it.Suits(p.Groups[i].Shape) && !p.Groups[i].Hopeless() {
			return true
		}
	}
	for i := range p.Base {
		if it.Suits(p.Base[i].Shape) {
			return true
		}
	}
	return false
}
