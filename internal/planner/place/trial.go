package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// What a new pod announces may be unknown until one has joined. Demand that no group serves for certain is then tried:
// one replica of one group is launched, and the next ones are planned by what it announces. A trial comes after all
// else, so a group that is known to serve the demand always goes first.

// try adds a trial for each demand that is not served and that only what is unknown may keep from being served.
func (p *Search) try(given []int64, out *Outcome) []int64 {
	open := slices.ContainsFunc(p.Groups, func(g Group) bool { return len(g.open) > 0 })
	if !open || p.delayed() {
		return given
	}
	given = slices.Clone(given)
	for _, i := range out.Claims {
		for _, it := range p.UnservedOf(i, out) {
			p.tryOne(given, it, nil)
		}
	}
	for _, g := range out.Gangs {
		for _, it := range p.awaiting(g) {
			p.tryOne(given, it, g)
		}
	}
	for i, n := range out.Unserved {
		if n > 0 && !p.Requests[i].Deferred {
			p.tryOne(given, p.Requests[i], nil)
		}
	}
	return given
}

// delayed reports whether the in-flight caps delay launches for demand that some group is known to serve.
func (p *Search) delayed() bool {
	return slices.ContainsFunc(p.Groups, func(g Group) bool {
		i := g.Shape.group
		return p.HeldOf(i) > 0 && !g.Trying() && len(p.SharedNodes.UnprovenPools(i)) == 0
	})
}

// awaiting returns the items of a gang that a trial could help: all of an option for whose bundles no place is missing
// for certain.
func (p *Search) awaiting(g *Gang) []*Item {
	for _, o := range g.Options {
		if g.Deferred || slices.ContainsFunc(o.Items, func(it *Item) bool { return !p.Possible(it) }) {
			continue
		}
		return o.Items
	}
	return nil
}

// tryOne launches one replica of the best group that may serve the item, unless pods of such a group are on their way.
func (p *Search) tryOne(given []int64, it *Item, gang *Gang) {
	best, awaited := -1, []Awaited(nil)
	for i := range p.Groups {
		wants := p.Wants(i, it, gang)
		switch {
		case len(wants) == 0:
		case given[i]+p.Groups[i].Pending() > 0:
			return // the next pods show it
		case p.mayTry(i, given, wants, gang) && (best < 0 || p.betterTrial(i, best)):
			best, awaited = i, wants
		}
	}
	if best >= 0 {
		given[best] += p.Groups[best].Hosts
		p.Trials = append(p.Trials, Trial{best, it, gang, awaited})
	}
}

// mayTry reports whether a trial is allowed: no limit prevents it, no idle pod of the group shows that it would not
// help, and the workers so far have not shown that another value is to be expected.
func (p *Search) mayTry(i int, given []int64, wants []Awaited, gang *Gang) bool {
	g := &p.Groups[i]
	var coming int64
	for k := range p.Groups {
		coming += p.Groups[k].Pending() + given[k]
	}
	if coming+g.Hosts > OrUnbounded(p.Policy.MaxInFlight) {
		return false
	}
	idle := func(n Node) bool { return n.GroupIndex == i && n.State == model.Idle && n.Stop == "" }
	if slices.ContainsFunc(p.Nodes, idle) ||
		slices.ContainsFunc(wants, func(a Awaited) bool { return !p.Undecided(a, gang, g) }) {
		return false
	}
	l := p.open(nil, given)
	return min(l.room[i], l.spare) >= g.Hosts && g.Hosts <= g.InFlight
}

// Undecided reports whether one more pod can show something new about an announcement. Workers that announced other
// values have shown that the group's pods differ, or that none has the value. One pod does not decide where the other
// pods of a gang run either, if several values are possible and the gang needs more than one.
func (p *Search) Undecided(a Awaited, gang *Gang, g *Group) bool {
	if a.Must.Key != "" {
		return len(a.Shown) == 0 || slices.ContainsFunc(a.Shown, a.met)
	}
	return len(a.Shown) == 0 && (len(a.Values) < 2 || p.onOnePod(gang, g))
}

// onOnePod reports whether one new pod of the group has room for a whole gang.
func (p *Search) onOnePod(gang *Gang, g *Group) bool {
	return slices.ContainsFunc(gang.Options, func(o Option) bool {
		free := slices.Clone(g.Shape.Total)
		for _, it := range o.Items {
			n := it.Request.Count
			if free.Times(it.Need, n) < n || gang.Strategy == raydemand.StrictSpread && BundlesOf(o.Items) > 1 {
				return false
			}
			free.subtract(it.Need, n)
		}
		return true
	})
}

// betterTrial orders groups for a trial: by preference, then by cost, then by name.
func (p *Search) betterTrial(a, b int) bool {
	x, y := p.Groups[a].Preference(), p.Groups[b].Preference()
	return cmp.Or(y.compare(x), cmp.Compare(p.Costs.PerReplica[a], p.Costs.PerReplica[b])) < 0
}

// TrialOf returns the trial of a group, or nil.
func (p *Search) TrialOf(i int) *Trial {
	at := slices.IndexFunc(p.Trials, func(t Trial) bool { return t.group == i })
	if at < 0 {
		return nil
	}
	return &p.Trials[at]
}
