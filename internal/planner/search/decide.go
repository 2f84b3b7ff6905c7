// Package search finds the launches that serve the demand of one snapshot best: in which order demand is placed, which preferences are
// tried and how plans are compared (preferences.go), and how much work all of it may take. It must not write sentences: why a plan is as
// it is, packages reasons and report read from the Outcome.
package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Decide makes the decision: the planning as it ended, the pods to launch by group, and what they serve. It panics with brokenOff
// soon after stop is closed; nil never is.
func Decide(stop <-chan struct{}, s *model.Snapshot, policy model.Policy) (p *Search, given []int64, out Outcome) {
	within, beyond := withinBounds(s)
	p = newSearch(fleet.New(within), within, policy)
	p.Stop, p.Beyond = stop, beyond
	given, out = p.capInFlight(p.settleRest())
	p.addUnplaceable(&out)
	out.shareAmongIdentical()
	p.refine(&out)
	p.keepUntilReplaced(&out)
	p.Fleet = p.WithoutIdle(out.Used, given)
	return p, given, out
}

// Search is the search for a plan: the demand of one snapshot, and the launches that serve it best.
type Search struct {
	*placing.Placer
	Requests []*vector.Item
	Claims   []Claim
	Gangs    []*fleet.Gang
	// placeable are the gangs that are planned for; of the others some bundle has no place at all.
	placeable []*fleet.Gang
	// RestRequests are the requests over REST in the order in which they are served, shareClaim the place of the claim for them.
	RestRequests []RestRequest
	RestClaim    int
	// Beyond are requests of owners that are too many; ownedCount and ownedShapes count those that are not.
	Beyond                  []raydemand.Owned
	OwnedCount, OwnedShapes int
	// kinds are the different bundles that shares ask for.
	kinds []*vector.Item
	// distinctGangs counts the gangs, equal ones that are placed together once.
	distinctGangs int
	// overdueNodes would leave as idle, by number.
	overdueNodes []int
	// Base lists what is free now, totals what is there whatever is in use.
	Base, totals []placing.NodeClass
	// Held counts, by group, the launches that the caps on pods in flight hold back; nil where there are none.
	Held []int64
}

// OverREST is the purpose of a call that was not made from within Ray.
const OverREST = "request_resources over REST"

// Claim is one standing call of request_resources: the cluster keeps at least this much in total.
type Claim struct {
	Purpose string
	Items   []*vector.Item
	// Refused: a limit stands in its way, so it is not planned for.
	Refused bool
	// keeps are further bundles that nodes are kept for and none is launched for.
	keeps []*vector.Item
}

func newSearch(r *fleet.Fleet, s *model.Snapshot, policy model.Policy) *Search {
	p := &Search{Placer: &placing.Placer{Fleet: r, Policy: policy}, Requests: r.Coarsen(r.Items(s.Requests)), Gangs: r.NewGangs(s.Gangs)}
	p.RestRequests = newRestRequests(r, s)
	p.OwnedCount, p.OwnedShapes = len(s.OwnedRequests), ShapesOf(s.OwnedRequests)
	p.settleKinds()
	for _, call := range []Claim{{Purpose: "request_resources", Items: r.Items(s.Constraint)}, {Purpose: OverREST, Items: p.restItems()}} {
		if call.Items = r.Coarsen(call.Items); len(call.Items) > 0 {
			p.RestClaim = len(p.Claims)
			p.Claims = append(p.Claims, call)
		}
	}
	waiting := len(p.Requests)+len(p.Claims)+len(p.Gangs) > 0
	if waiting {
		p.Base = p.OpenLedger(false, r.MarkHolders(p.Gangs))
		p.placeable = p.gangsWithPlaces()
		p.distinctGangs = fleet.CountDistinct(p.placeable)
	}
	p.Costs = cost.New(r, policy.GPUForCPU, p.eachItem)
	if !waiting {
		return p // nobody asks what is free
	}
	for i := range p.Base {
		if p.Base[i].Phase == fleet.Overdue {
			p.overdueNodes = append(p.overdueNodes, p.Base[i].Members...)
		}
	}
	p.totals = p.Base
	if len(p.Claims) > 0 {
		p.totals = p.OpenLedger(true, nil)
	}
	return p
}

// eachItem calls yield with all that is asked for, equal gangs once.
func (p *Search) eachItem(yield func(*vector.Item) bool) {
	all := slices.Clone(p.Requests)
	for _, c := range p.Claims {
		all = append(all, c.Items...)
	}
	for k, g := range p.placeable {
		if k == 0 || g.Key != p.placeable[k-1].Key {
			all = append(all, g.Items()...)
		}
	}
	for _, it := range all {
		if !yield(it) {
			return
		}
	}
}
