package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
)

// Attribution is what serves one request over REST.
type Attribution struct {
	*RestRequest
	// Plan is all but its state and reason.
	Plan model.RequestPlan
	// OnTheWay counts bundles on workers that have not joined Ray, Planned those of them for which this plan launches
	// pods.
	OnTheWay, Planned int64
	// Deferred are the items that are too many for this plan, Launching those for which it launches pods.
	Deferred, Launching []*Item
	groups              map[int]*attributed
}

// attributed are the pods of one group that serve a request. unnamed ones are not visible yet, or launched now.
type attributed struct {
	model.RequestGroup
	unnamed int64
	seen    map[int]bool // nodes by number
}

// Attribute deals out the places that the decision found for each kind of bundle, in the order in which it assigned
// them.
func (p *Search) Attribute(given []int64, out *Outcome) (all []*Attribution) {
	// The planned pods are launched now, or when the in-flight caps allow it.
	launchable := len(p.RestRequests) > 0 && (p.Launches(p.RestClaim, out) || p.Claims[p.RestClaim].Delayed)
	for _, s := range p.AssignmentOrder() {
		a := &Attribution{RestRequest: s, groups: map[int]*attributed{},
			Plan: model.RequestPlan{ID: s.ID, Owner: s.Owner, Plain: s.Plain, Priority: s.Priority}}
		if s.AllOrNothing && !launchable {
			s.None() // it was planned for, but cannot be served
		}
		for i, it := range s.Items {
			a.Plan.Asked += it.Request.Count
			if it.Deferred {
				s.Admitted[i], a.Deferred = 0, append(a.Deferred, it)
			}
			a.Plan.Waiting += s.Admitted[i]
			if it.Trivial() {
				a.Plan.Served += s.Admitted[i]
				continue
			}
			planned := a.Planned
			if out.Places[it.Key] = p.take(a, out.Places[it.Key], s.Admitted[i]); a.Planned > planned {
				a.Launching = append(a.Launching, it)
			}
		}
		if a.Plan.Waiting -= a.Plan.Served; !launchable {
			a.Plan.Waiting = a.OnTheWay
		}
		slices.Sort(a.Plan.Pods)
		a.Plan.Pods = a.Plan.Pods[:min(len(a.Plan.Pods), model.MaxRequestPods)]
		for i, g := range a.groups {
			if g.unnamed > 0 { // a request with several kinds of bundles may count such a pod more than once
				unnamed := min(g.unnamed, given[i]+p.Groups[i].Missing)
				g.Pods, g.Waiting = g.Pods+unnamed, g.Waiting+unnamed
			}
			a.Plan.Groups = append(a.Plan.Groups, g.RequestGroup)
		}
		slices.SortFunc(a.Plan.Groups, func(a, b model.RequestGroup) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, a)
	}
	return all
}

// take takes n bundles from the first placements and returns the placements with bundles left.
func (p *Search) take(a *Attribution, from []Placement, n int64) []Placement {
	for n > 0 && len(from) > 0 {
		at := &from[0]
		bundles := min(n, at.Count-at.Used)
		p.use(a, at, at.Used/at.Each, (at.Used+bundles-1)/at.Each+1, bundles)
		at.Used += bundles
		if n -= bundles; at.Used == at.Count {
			from = from[1:]
		}
	}
	return from
}

// use counts bundles on the nodes of a placement from first up to end.
func (p *Search) use(a *Attribution, at *Placement, first, end, bundles int64) {
	g := a.groups[at.Group]
	if g == nil {
		g = &attributed{seen: map[int]bool{}}
		if at.Group != HeadGroup {
			g.Name = p.Groups[at.Group].Name
		}
		a.groups[at.Group] = g
	}
	if at.Phase != OnTheWay {
		a.Plan.Served += bundles
	} else if a.OnTheWay += bundles; at.Planned {
		a.Planned += bundles
	}
	if at.Members == nil {
		g.unnamed += end - first
		return
	}
	for _, number := range at.Members[first:end] {
		n := &p.Nodes[number]
		if g.seen[number] {
			continue
		}
		g.seen[number] = true
		g.Pods++
		if at.Phase == OnTheWay {
			g.Waiting++
			if n.Since.After(g.Since) {
				g.Since = n.Since
			}
		}
		if !n.Expected {
			a.Plan.Pods = append(a.Plan.Pods, n.Pod)
		}
	}
}
