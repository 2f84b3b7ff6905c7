package place

import (
	"cmp"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
)

// Warm capacity comes after everything else. All demand is placed and its launches are chosen; what is then free
// counts, the idle workers among it stay, and what is missing is launched. The launches are given to one more round
// of the demand: they stay only if that round serves as much and launches nothing, because the next plan finds these
// pods on their way and makes that round. So warm capacity changes nothing for demand, and a plan stays a fixed
// point.
//
// An entry is free if it is free beside the work, and also beside each call of request_resources: what a request holds
// is not free, even if nothing runs there.

// overWarm is the purpose of launches for warm capacity.
const overWarm = "warm capacity"

// warmRules finds the groups that warm capacity may use. Demand that waits although its groups could launch more, waits
// for something shared: for nodes, a quota, the bound on all workers, or a cap. Whatever shares that with it keeps no
// idle workers for warm capacity, and nothing is launched there.
func (p *Search) warmRules(given []int64, out *Outcome) WarmRules {
	rules := WarmRules{make([]bool, len(p.Groups)), make([]bool, len(p.Groups))}
	waits := make([]bool, len(p.Groups))
	for i := range p.Groups {
		waits[i] = p.Groups[i].room(given[i]) >= p.Groups[i].Hosts && p.unservedSuits(out, p.Groups[i].Shape)
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		rules.keep[i] = true
		rules.Launch[i] = !waits[i] && !g.Trying() && !g.Waiting() && !p.DrawsGangs(i) &&
			len(p.SharedNodes.UnprovenPools(i)) == 0
		for k := range p.Groups {
			if waits[k] && k != i && p.shares(i, k) {
				rules.keep[i], rules.Launch[i] = waits[i], false
			}
		}
	}
	if p.Policy.MaxInFlight > 0 && p.Held != nil { // demand waits for the cap on all groups
		clear(rules.Launch)
	}
	return rules
}

// DrawsGangs reports whether a gang could move to a new replica of a group as soon as the replica has a name, because
// each replica is a domain of its own. The gang would take what is launched for warm capacity.
func (p *Search) DrawsGangs(i int) bool {
	g := &p.Groups[i]
	return slices.ContainsFunc(p.Gangs, func(gang *Gang) bool {
		domain := g.open.Named(gang.TopologyLabel)
		return domain != nil && domain.PerReplica && !gang.Held && gang.suits(g.Shape)
	})
}

// unservedSuits reports whether some demand that waits, or that is too much for this plan, could use a worker.
func (p *Search) unservedSuits(out *Outcome, s *Shape) bool {
	for at, n := range out.Unserved {
		if n > 0 && p.Requests[at].Suits(s) {
			return true
		}
	}
	waits := func(g *Gang) bool { return (g.unplaceable || slices.Contains(out.Gangs, g)) && g.suits(s) }
	return slices.ContainsFunc(p.Gangs, waits) ||
		slices.ContainsFunc(out.Claims, func(i int) bool { return SuitsAny(p.Claims[i].Items, s) }) ||
		SuitsAny(p.DeferredItems(), s)
}

// shares reports whether workers of two groups compete for something.
func (p *Search) shares(i, k int) bool {
	return p.Bound < math.MaxInt64 || p.Quotas.Shared(i, k) ||
		p.SharedNodes.Limits(i) && slices.Contains(p.SharedNodes.Rivals(i), k)
}

// warmPlacing is one placing of the warm capacity.
type warmPlacing struct {
	launched []int64
	entries  []WarmEntry
}

// free counts what the entries have.
func (w *warmPlacing) free() (n int64) {
	for k := range w.entries {
		n += w.entries[k].total()
	}
	return n
}

// warm launches what is missing of the warm capacity, and finds the workers that are free for it.
func (p *Search) warm(given []int64, out Outcome) ([]int64, Outcome) {
	if out.Warmed = make([]int64, len(given)); len(p.Warm) == 0 {
		return given, out
	}
	p.WarmRules = p.warmRules(given, &out)
	before := given
	found := p.placeWarm(given, &out, p.WarmRules)
	for range maxRounds {
		if Sum(found.launched) == 0 {
			break
		}
		more := slices.Clone(given)
		for i, n := range found.launched {
			more[i] += n
		}
		again := p.bestRound(more, fullest)
		if Sum(again.launched) > 0 || !again.asGood(&out) {
			break // demand would be placed in another way, and launched for again
		}
		next := p.placeWarm(more, &again, p.WarmRules)
		if next.free() <= found.free() {
			break // demand would spread over these pods
		}
		given, out, found = more, again, next
	}
	p.Warm = found.entries
	out.Warmed = slices.Clone(given)
	for i, n := range before {
		out.Warmed[i] -= n
	}
	return given, out
}

// placeWarm places the entries on what the demand leaves, on each ledger of the round in turn. Launches for one ledger
// are there on the next.
func (p *Search) placeWarm(given []int64, out *Outcome, rules WarmRules) warmPlacing {
	found := warmPlacing{launched: make([]int64, len(p.Groups)), entries: slices.Clone(p.Warm)}
	// The demand's costs depend on which groups serve the same demand, and must not depend on warm capacity.
	costs := p.Costs
	defer func() { p.Costs = costs }()
	var items []*Item
	for k := range p.Warm {
		if it := p.Warm[k].Item; it != nil {
			items = append(items, it)
		}
	}
	p.Costs = newCosts(p.Fleet, items)
	for at, base := range out.ledgers {
		l := p.trial(base)
		l.how = cheapest
		p.capRoom(l, given, func(i int) bool { return rules.Launch[i] })
		p.openAgain(l, func(i int) bool { return rules.keep[i] })
		for i, n := range found.launched {
			if n > 0 {
				l.classes = append(l.classes, l.launch(&p.Groups[i], n)...)
			}
		}
		entries := slices.Clone(p.Warm)
		for k := range entries {
			p.placeEntry(l, &entries[k])
		}
		copy(found.launched, l.launched)
		for k := range entries {
			found.entries[k].merge(&entries[k], at == 0)
		}
		p.release(l)
	}
	return found
}

// placeEntry finds free capacity for one entry, and launches what is missing.
func (p *Search) placeEntry(l *Ledger, e *WarmEntry) {
	e.Ready, e.Coming, e.Launching, e.Nodes, e.pods = 0, 0, 0, nil, map[int]int64{}
	switch {
	case e.Item != nil:
		p.placeBundles(l, e)
	case e.Group >= 0:
		g := &p.Groups[e.Group]
		p.takeVacant(l, e)
		if replicas := min(e.Missing(), min(l.room[e.Group], l.spare)/g.Hosts); replicas > 0 {
			l.launch(g, replicas*g.Hosts)
		}
	}
}

// placeBundles finds room for the bundles of an entry.
func (p *Search) placeBundles(l *Ledger, e *WarmEntry) {
	l.log = l.log[:0]
	vacant := p.vacantNodes(l)
	p.place(l, p.newBatch(overWarm, []*Item{e.Item}, l.how))
	for _, t := range l.log {
		switch {
		case t.fresh: // the next placing finds them
			continue
		case t.Planned:
			e.Launching += t.Count
			continue
		case t.Phase == OnTheWay:
			e.Coming += t.Count
			e.pods[t.Group] += t.Count / t.Each
			continue
		}
		e.Ready += t.Count
		for _, node := range t.Members {
			if vacant[node] {
				e.Nodes = append(e.Nodes, node)
			}
		}
	}
}

// vacantNodes marks the nodes of groups that have joined and are free as a whole.
func (p *Search) vacantNodes(l *Ledger) map[int]bool {
	vacant := map[int]bool{}
	for k := range l.classes {
		if class := &l.classes[k]; class.Shape.group >= 0 && class.phase != OnTheWay && class.vacant() {
			for _, n := range class.members {
				vacant[n] = true
			}
		}
	}
	return vacant
}

// keepWarm keeps the nodes that are free for warm capacity. It comes last, so that a node that stays for another reason
// is not called warm.
func (p *Search) keepWarm(out *Outcome) {
	for k := range p.Warm {
		for _, n := range p.Warm[k].Nodes {
			if out.Stays[n] == 0 {
				out.Stays[n] = KeptWarm + Stay(k)
			}
		}
	}
}

// WarmFor returns the entry for which alone a node stays, or nil.
func (p *Search) WarmFor(out *Outcome, node int) *WarmEntry {
	if stay := out.Stays[node]; stay >= KeptWarm {
		return &p.Warm[stay-KeptWarm]
	}
	return nil
}

// WarmPods counts, by the name of the group, the pods that are free for an entry alone.
func (p *Search) WarmPods(e *WarmEntry) map[string]int64 {
	pods := map[string]int64{}
	for i, n := range e.pods {
		if n > 0 {
			pods[p.Groups[i].Name] += n
		}
	}
	for _, n := range e.Nodes {
		pods[p.Nodes[n].Group]++
	}
	return pods
}

// WarmEntry is an entry of the snapshot's warm capacity, and what the plan does for it.
type WarmEntry struct {
	*model.WarmEntry
	// Group is the number of the entry's group, or negative. Item is its bundle if it has no group.
	Group int
	Item  *Item
	// Ready, Coming and Launching count replicas or bundles.
	Ready, Coming, Launching int64
	// Nodes are the nodes that have joined, are free for the entry and hold nothing else.
	Nodes []int
	// pods counts pods on their way, by group, that are free for the entry alone.
	pods map[int]int64
}

// Missing is how many replicas or bundles the entry lacks.
func (e *WarmEntry) Missing() int64 { return max(0, e.Count-e.total()) }

func (e *WarmEntry) total() int64 { return e.Ready + e.Coming + e.Launching }

// newWarm lists the entries: those with a group first, because they take whole workers, each kind in the order of the
// policy.
func newWarm(r *Fleet, s *model.Snapshot) (all []WarmEntry) {
	if s.Warm == nil {
		return nil
	}
	for _, grouped := range []bool{true, false} {
		for i := range s.Warm.Keep {
			e := &s.Warm.Keep[i]
			if (e.Group != "") != grouped || e.Count <= 0 {
				continue
			}
			made := WarmEntry{WarmEntry: e, Group: -1}
			if grouped {
				made.Group = slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == e.Group })
			} else {
				request := e.Request()
				made.Item = r.NewItem(request, r.NeedOf(request.Bundle), e.Name)
			}
			all = append(all, made)
		}
	}
	return all
}

// merge joins the result of another ledger: the one with less counts, and all nodes stay.
func (e *WarmEntry) merge(other *WarmEntry, first bool) {
	nodes := append(slices.Clone(e.Nodes), other.Nodes...)
	slices.Sort(nodes)
	if first || cmp.Or(cmp.Compare(other.total(), e.total()), cmp.Compare(other.Ready, e.Ready),
		cmp.Compare(other.Coming, e.Coming)) < 0 {
		*e = *other
	}
	e.Nodes = slices.Compact(nodes)
}

// WarmRules say in which groups warm capacity may keep workers, and in which it may launch some.
type WarmRules struct{ keep, Launch []bool }

// vacant reports whether the nodes of a class are free as a whole.
func (l *NodeClass) vacant() bool {
	return !l.touched && !l.used && slices.Equal(l.free, l.Shape.Total)
}

// takeVacant takes vacant replicas of an entry's group off the ledger, as many as the entry needs, those that stay
// anyway in front: first workers that Ray does not call idle, then those that were busy last, then pods on their way.
// Of the latter only the number counts, because demand may be placed on any of equal pods.
func (p *Search) takeVacant(l *Ledger, e *WarmEntry) {
	hosts := p.Groups[e.Group].Hosts
	units := p.vacantUnits(l, e.Group)
	taken := map[int]bool{}
	for _, u := range units[:min(int64(len(units)), e.Count)] {
		for _, n := range u.nodes {
			taken[n] = true
		}
		e.Nodes = append(e.Nodes, u.nodes...)
		e.Ready++
	}
	var coming, planned int64
	for k := range l.classes {
		switch class := &l.classes[k]; {
		case class.Shape.group != e.Group || !class.vacant():
		case class.phase != OnTheWay:
			class.members = slices.DeleteFunc(slices.Clone(class.members), func(n int) bool { return taken[n] })
			class.count = int64(len(class.members))
		case class.planned:
			planned += class.count
		default:
			coming += class.count
		}
	}
	e.Coming = min(coming/hosts, e.Missing())
	e.Launching = min((coming+planned)/hosts-coming/hosts, e.Missing())
	e.pods[e.Group] = e.Coming * hosts
	l.withdraw(e.Group, (e.Coming+e.Launching)*hosts)
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool { return class.count == 0 })
}

// withdraw takes vacant pods on their way off the ledger, those that this plan launches last.
func (l *Ledger) withdraw(group int, pods int64) {
	for _, planned := range []bool{false, true} {
		for k := range l.classes {
			class := &l.classes[k]
			if class.Shape.group != group || class.planned != planned || class.phase != OnTheWay ||
				!class.vacant() {
				continue
			}
			n := min(class.count, pods)
			pods -= n
			if class.count -= n; class.members != nil {
				class.members = class.members[:class.count:class.count]
			}
		}
	}
}

// vacantUnits lists the vacant replicas of a group whose workers have all joined.
func (p *Search) vacantUnits(l *Ledger, group int) []unit {
	vacant, marked := p.vacantNodes(l), make([]bool, len(p.Groups))
	marked[group] = true
	units := slices.DeleteFunc(p.units(marked), func(u unit) bool {
		return int64(len(u.nodes)) != p.Groups[group].Hosts ||
			slices.ContainsFunc(u.nodes, func(n int) bool { return !vacant[n] })
	})
	phase := func(u unit) (last Phase) {
		for _, n := range u.nodes {
			if last = max(last, p.Nodes[n].ownPhase()); p.overdue(&p.Nodes[n]) {
				last = Overdue
			}
		}
		return last
	}
	slices.SortFunc(units, func(a, b unit) int {
		return cmp.Or(
			cmp.Compare(phase(a), phase(b)), cmp.Compare(a.idleSeconds, b.idleSeconds), cmp.Compare(a.key, b.key),
		)
	})
	return units
}

// openAgain begins anew on a ledger on which all demand is placed: what was placed counts as taken, and touched marks
// only what is placed from now on. Vacant classes of the groups that are not offered are taken off. Idle workers whose
// timeout is over come after the other idle ones, also while their group's minimum keeps them: what the minimum keeps
// changes with each launch.
func (p *Search) openAgain(l *Ledger, offered func(group int) bool) {
	l.stepwise, l.tracing, l.log = false, true, nil
	clear(l.launched)
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool {
		return class.vacant() && class.Shape.group >= 0 && !offered(class.Shape.group)
	})
	for k := range l.classes {
		class := &l.classes[k]
		class.hidden = false
		if class.touched {
			// A class that demand uses is never vacant again, whatever is free on it.
			class.touched, class.used = false, true
		}
		overdue := func(n int) bool { return p.overdue(&p.Nodes[n]) }
		if class.phase >= Overdue || !slices.ContainsFunc(class.members, overdue) {
			continue
		}
		late := *class
		late.phase = Overdue
		late.members = slices.DeleteFunc(slices.Clone(class.members), func(n int) bool { return !overdue(n) })
		class.members = slices.DeleteFunc(slices.Clone(class.members), overdue)
		class.count, late.count = int64(len(class.members)), int64(len(late.members))
		l.classes = append(l.classes, late)
	}
	l.classes = slices.DeleteFunc(l.classes, func(class NodeClass) bool { return class.count == 0 })
	slices.SortStableFunc(l.classes, func(a, b NodeClass) int { return cmp.Compare(a.phase, b.phase) })
}

// capRoom sets the room of a ledger's groups to what their limits and the in-flight caps allow beside the given pods
// and those launched on it, and closes the groups that are not open.
func (p *Search) capRoom(l *Ledger, given []int64, open func(group int) bool) {
	given = slices.Clone(given)
	for i, n := range l.launched {
		given[i] += n
	}
	p.bindLimits(l, given)
	for i := range p.Groups {
		if l.room[i] = min(l.room[i], p.roomUnderCap(i, given)); !open(i) {
			l.room[i] = 0
		}
	}
	l.spare = min(l.spare, max(OrUnbounded(p.Policy.MaxInFlight)-p.AllInFlight(given), 0))
}
