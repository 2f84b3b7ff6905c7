package place

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// awaits returns what a new pod of the group must turn out to announce to serve an item that it does not serve for
// certain. It reports false if such a pod serves the item anyway, or could not serve it whatever it announces.
func (r *Fleet) awaits(g *Group, it *Item) (all []landing.Awaited, ok bool) {
	if len(g.open) == 0 || it.Suits(g.Shape) {
		return nil, false
	}
	for _, t := range it.Need {
		if g.Shape.Total.Has(t) {
			continue
		}
		value, typed := strings.CutPrefix(r.Names[t.Resource], raydemand.AcceleratorTypePrefix)
		a := g.open.Named(raydemand.AcceleratorTypePrefix)
		if !typed || a == nil || !a.Allows(value) || t.Amount > raydemand.One {
			return nil, false
		}
		all = append(all, landing.Awaited{
			Announced: a, Must: raydemand.Constraint{Key: a.Name, Op: raydemand.In, Values: []string{value}},
		})
	}
	if it.Rank[g.Shape.Labels] != NoMatch {
		return all, len(all) > 0
	}
	if !it.Slice.Allows(r.SliceOf(g.Shape)) {
		return nil, false
	}
	for _, selector := range it.Request.Selectors {
		if labels, possible := g.open.Awaits(selector, g.Labels); possible {
			return append(all, labels...), true
		}
	}
	return nil, false
}

// addShapes sets what new pods of a group are.
func (r *Fleet) addShapes(g *Group, i int) {
	shape := func(first bool) *Shape {
		resources, labels := g.newPod(first, "", g.Resources, g.Labels)
		total := r.vectorOf(resources)
		return &Shape{
			group: i, Total: total, Labels: r.labelSet(labels, g.Slice), Accelerated: r.accelerated(total),
		}
	}
	g.Shape = shape(true)
	if g.Hosts == 1 {
		return
	}
	if others := shape(false); others.Labels != g.Shape.Labels || !slices.Equal(others.Total, g.Shape.Total) {
		g.others = others
	}
}

// newPod returns the resources and labels that a pod which has not joined has in a plan. replica is the name of its
// replica; empty if it is not known yet.
func (g *Group) newPod(
	first bool, replica string, resources raydemand.Bundle, labels map[string]string,
) (raydemand.Bundle, map[string]string) {
	resources, labels = landing.AddCertain(g.Announces, resources, labels)
	return landing.OnTPUHost(first, g.Hosts, resources, g.open.AddTo(labels, replica))
}

// firstHosts returns the pods on their way that count as the first hosts of their replicas. Nobody knows them before
// they join, so they are the first ones by name, unless a host that has joined is the first of its replica.
func (r *Fleet) firstHosts(s *model.Snapshot, byName map[string]int) map[string]bool {
	type replica struct {
		group, name string
	}
	coming, hosts, heads := map[replica][]string{}, map[replica]int64{}, map[replica]int64{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		g, known := byName[n.Group]
		if !known || r.Groups[g].others == nil {
			continue
		}
		of := replica{n.Group, n.Replica}
		hosts[of]++
		switch {
		case n.Labels[landing.TPUWorkerID] == "0" || slices.ContainsFunc(n.Total.Names(), landing.IsTPUHead):
			heads[of]++
		case n.State == model.Pending || n.Total == nil:
			coming[of] = append(coming[of], n.Pod)
		}
	}
	first := map[string]bool{}
	for of, pods := range coming {
		slices.Sort(pods)
		replica := r.Groups[byName[of.group]].Hosts
		short := RoundUp(hosts[of], replica)/replica - heads[of]
		for _, pod := range pods[:min(max(short, 0), int64(len(pods)))] {
			first[pod] = true
		}
	}
	return first
}

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
			p.tryOne(given, it, nil, out)
		}
	}
	for _, g := range out.Gangs {
		for _, it := range p.awaiting(g) {
			p.tryOne(given, it, g, out)
		}
	}
	for i, n := range out.Unserved {
		if n > 0 && !p.Requests[i].Deferred {
			p.tryOne(given, p.Requests[i], nil, out)
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
		if g.Deferred || slices.ContainsFunc(o, func(it *Item) bool { return !p.Possible(it) }) {
			continue
		}
		return o
	}
	return nil
}

// tryOne launches one replica of the best group that may serve the item, unless pods of such a group are on their way.
func (p *Search) tryOne(given []int64, it *Item, gang *Gang, out *Outcome) {
	best, awaited := -1, []landing.Awaited(nil)
	for i := range p.Groups {
		wants := p.Wants(i, it, gang)
		switch {
		case len(wants) == 0:
		case p.Coming(i, given, wants, out):
			return // the next pods show it
		case p.mayTry(i, given, wants, gang, out) && (best < 0 || p.betterTrial(i, best)):
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
func (p *Search) mayTry(i int, given []int64, wants []landing.Awaited, gang *Gang, out *Outcome) bool {
	g := &p.Groups[i]
	if p.AllInFlight(given)+g.Hosts > OrUnbounded(p.Policy.MaxInFlight) {
		return false
	}
	if p.Unused(i, model.Idle, wants, out) ||
		slices.ContainsFunc(wants, func(a landing.Awaited) bool { return !p.Undecided(a, gang, g) }) {
		return false
	}
	l := p.open(nil, given)
	return min(l.room[i], l.spare) >= g.Hosts && g.Hosts <= g.InFlight
}

// Coming reports whether pods on their way will show whether a new pod would help.
func (p *Search) Coming(i int, given []int64, wants []landing.Awaited, out *Outcome) bool {
	return given[i]+p.Groups[i].Missing > 0 || p.Unused(i, model.Pending, wants, out)
}

// Unused reports whether the group has a pod in this state that could show whether a new one would help. If each
// replica is a domain of its own, one that a gang takes in this plan shows nothing about the next, nor does one with
// work: what is free in it has no room for the gang. Any other must be taken first, so that there are never more idle
// replicas than gangs to take them.
func (p *Search) Unused(i int, state model.NodeState, wants []landing.Awaited, out *Outcome) bool {
	taken := func(Node) bool { return false }
	if eachReplica(wants) {
		busy := p.busyReplicas(i)
		taken = func(n Node) bool {
			return busy[n.Replica] || slices.ContainsFunc(out.Runs, func(r Run) bool {
				return r.Within.Topology != nil && r.Within.Admits(n.Shape.Labels)
			})
		}
	}
	return slices.ContainsFunc(p.Nodes, func(n Node) bool {
		return n.GroupIndex == i && n.State == state && n.Stop == "" && !taken(n)
	})
}

// busyReplicas returns the names of the group's replicas that have a pod with work.
func (p *Search) busyReplicas(i int) map[string]bool {
	busy := map[string]bool{}
	for _, n := range p.Nodes {
		if n.GroupIndex == i && n.State == model.Running && n.Replica != "" {
			busy[n.Replica] = true
		}
	}
	return busy
}

// eachReplica reports whether a gang awaits nothing but a domain that each new replica is.
func eachReplica(wants []landing.Awaited) bool {
	return len(wants) == 1 && wants[0].PerReplica && wants[0].Must.Key == ""
}

// Undecided reports whether one more pod can show something new about an announcement. Workers that announced other
// values have shown that the group's pods differ, or that none has the value. One pod does not decide where the other
// pods of a gang run either, if several values are possible and the gang needs more than one. A new replica that is a
// domain of its own must have room for the whole gang.
func (p *Search) Undecided(a landing.Awaited, gang *Gang, g *Group) bool {
	switch {
	case a.Must.Key != "":
		return len(a.Shown) == 0 || slices.ContainsFunc(a.Shown, a.Met)
	case a.PerReplica:
		return p.holdsWhole(gang, g, g.Hosts)
	}
	return len(a.Shown) == 0 && (len(a.Values) < 2 || p.holdsWhole(gang, g, 1))
}

// holdsWhole reports whether some new pods of the group have room for a whole gang.
func (p *Search) holdsWhole(gang *Gang, g *Group, hosts int64) bool {
	return slices.ContainsFunc(gang.Options, func(o []*Item) bool {
		b := p.newBatch("", o, fullest)
		for n := hosts; n > 0 && !b.served(); n-- {
			free, quota := slices.Clone(g.Shape.Total), int64(MaxCount)
			if gang.Strategy == raydemand.StrictSpread {
				quota = 1
			}
			for i, it := range o {
				if _, mayServe := p.awaits(g, it); !mayServe && !it.Suits(g.Shape) {
					return false
				}
				take := free.Times(it.Need, min(b.left[i], quota))
				free.subtract(it.Need, take)
				b.left[i], quota = b.left[i]-take, quota-take
			}
		}
		return b.served()
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

// Wants returns what a new pod of a group must turn out to announce to serve an item, or an item of a gang; nil if no
// announcement makes a difference.
func (p *Search) Wants(i int, it *Item, gang *Gang) []landing.Awaited {
	g := &p.Groups[i]
	awaited, ok := p.awaits(g, it)
	if g.Hopeless() || !ok && !it.Suits(g.Shape) {
		return nil
	}
	if gang == nil || gang.TopologyLabel == "" || gang.Held {
		return awaited
	}
	if domain := g.open.Named(gang.TopologyLabel); domain != nil {
		return append(awaited, landing.Awaited{Announced: domain})
	}
	return awaited
}
