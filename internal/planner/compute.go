package planner

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Compute makes the plan. It never fails: what cannot be served is told in the plan, with the reason, and what a
// snapshot says against all sense (a node of a removed group, more free than there is, a minimum above the maximum)
// is planned around and told as a finding. It changes nothing it is given.
//
// The order is Ray's (docs/reference/facts.md#planning-order): what must go, minima, request_resources, gangs, requests,
// and last what is idle. Nodes that must go take no demand.
func Compute(s model.Snapshot, policy model.Policy) model.Plan {
	p, given, out := decideUntil(nil, &s, policy)
	return newReporter(p).report(given, out)
}

// decideUntil makes the decision: the planning as it ended, the pods to launch by group, and what they serve. It panics with brokenOff
// soon after stop is closed; nil never is.
func decideUntil(stop <-chan struct{}, s *model.Snapshot, policy model.Policy) (p *planning, given []int64, out outcome) {
	within, beyond := withinBounds(s)
	p = newPlanning(fleet.New(within), within, policy)
	p.Stop, p.beyond = stop, beyond
	given, out = p.wave(p.settleShares())
	p.addUnplaceable(&out)
	out.share()
	p.refine(&out)
	p.keepUntilReplaced(&out)
	p.Fleet = p.WithoutIdle(out.used, given)
	return p, given, out
}

// planning is the search for a plan: the demand of one snapshot, and the launches that serve it best.
type planning struct {
	*placing.Placer
	requests []*vector.Item
	claims   []claim
	gangs    []*fleet.Gang
	// placeable are the gangs that are planned for; of the others some bundle has no place at all.
	placeable []*fleet.Gang
	// shares are the requests over REST in the order in which they are served, shareClaim the place of the claim for them.
	shares     []share
	shareClaim int
	// beyond are requests of owners that are too many; ownedCount and ownedShapes count those that are not.
	beyond                  []raydemand.Owned
	ownedCount, ownedShapes int
	// kinds are the different bundles that shares ask for.
	kinds []*vector.Item
	// crowds counts the gangs, equal ones that are placed together once.
	crowds int
	// overdueNodes would leave as idle, by number.
	overdueNodes []int
	// base lists what is free now, totals what is there whatever is in use.
	base, totals []placing.NodeClass
	// held counts, by group, the launches that the caps on pods in flight hold back; nil where there are none.
	held []int64
}

// overREST is the purpose of a call that was not made from within Ray.
const overREST = "request_resources over REST"

// claim is one standing call of request_resources: the cluster keeps at least this much in total.
type claim struct {
	purpose string
	items   []*vector.Item
	// refused: a limit stands in its way, so it is not planned for.
	refused bool
	// keeps are further bundles that nodes are kept for and none is launched for.
	keeps []*vector.Item
}

func newPlanning(r *fleet.Fleet, s *model.Snapshot, policy model.Policy) *planning {
	p := &planning{Placer: &placing.Placer{Fleet: r, Policy: policy}, requests: r.Coarsen(r.Items(s.Requests)), gangs: r.NewGangs(s.Gangs)}
	p.shares = newShares(r, s)
	p.ownedCount, p.ownedShapes = len(s.OwnedRequests), shapesOf(s.OwnedRequests)
	p.settleKinds()
	for _, call := range []claim{{purpose: "request_resources", items: r.Items(s.Constraint)}, {purpose: overREST, items: p.shareItems()}} {
		if call.items = r.Coarsen(call.items); len(call.items) > 0 {
			p.shareClaim = len(p.claims)
			p.claims = append(p.claims, call)
		}
	}
	waiting := len(p.requests)+len(p.claims)+len(p.gangs) > 0
	if waiting {
		p.base = p.OpenLedger(false, r.MarkHolders(p.gangs))
		p.placeable = p.gangsWithPlaces()
		p.crowds = fleet.CountDistinct(p.placeable)
	}
	p.Costs = cost.New(r, policy.GPUForCPU, p.eachItem)
	if !waiting {
		return p // nobody asks what is free
	}
	for i := range p.base {
		if p.base[i].Phase == fleet.Overdue {
			p.overdueNodes = append(p.overdueNodes, p.base[i].Members...)
		}
	}
	p.totals = p.base
	if len(p.claims) > 0 {
		p.totals = p.OpenLedger(true, nil)
	}
	return p
}

// eachItem calls yield with all that is asked for, equal gangs once.
func (p *planning) eachItem(yield func(*vector.Item) bool) {
	all := slices.Clone(p.requests)
	for _, c := range p.claims {
		all = append(all, c.items...)
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
