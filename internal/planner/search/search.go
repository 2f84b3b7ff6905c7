package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Possible reports whether some group or some node that stays could ever serve one bundle. A maximum of 0 is a limit
// like any other: Ray may cancel what it learns is impossible, so the word is used for nothing that a limit explains.
func (p *Search) Possible(it *vector.Item) bool {
	for i := range p.Groups {
		if it.Suits(p.Groups[i].Shape) {
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

// Search is the search for a plan: the demand of one snapshot, and the launches that serve it best.
type Search struct {
	*placing.Placer
	Requests []*vector.Item
	Claims   []Claim
	Gangs    []*fleet.Gang
	// placeable are the gangs that are planned for; of the others some bundle has no place at all.
	placeable []*fleet.Gang
	// RestRequests are the requests over REST in the order in which they are served, RestClaim the place of the claim for
	// them.
	RestRequests []RestRequest
	RestClaim    int
	// Beyond are requests of owners that are too many; OwnedCount and OwnedShapes count those that are not.
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

// itemCount counts what is placed one by one.
func (p *Search) itemCount() int {
	items := len(p.Requests)
	for _, c := range p.Claims {
		items += len(c.Items)
	}
	for gangs := p.placeable; len(gangs) > 0; {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		items += len(front[0].Options[0].Items)
	}
	return items
}

// settleKinds lists the different bundles that requests over REST ask for, largest first. They are read once: trials
// add up counts of them alone.
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

// ofKinds makes an item of each kind that is counted.
func (p *Search) ofKinds(counts []int64) []*vector.Item {
	kinds := 0
	for _, n := range counts {
		if n > 0 {
			kinds++
		}
	}
	// A plan asks for this hundreds of times, often for few of thousands of kinds.
	made, all := make([]vector.Item, 0, kinds), make([]*vector.Item, 0, kinds)
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
