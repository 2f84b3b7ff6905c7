package search

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Warm capacity comes after everything else. All demand is placed and its launches are chosen; what is then free
// counts, the idle workers among it stay, and what is missing is launched. The launches are given to one more round
// of the demand: they stay only if that round serves as much and launches nothing, because the next plan finds these
// pods on their way and makes that round. So warm capacity changes nothing for demand, and a plan stays a fixed
// point.
//
// An entry is free if it is free beside the work, and also beside each call of request_resources: what a request holds
// is not free, even if nothing runs there.

// OverWarm is the purpose of launches for warm capacity.
const OverWarm = "warm capacity"

// warmRules finds the groups that warm capacity may use. Demand that waits although its groups could launch more, waits
// for something shared: for nodes, a quota, the bound on all workers, or a cap. Whatever shares that with it keeps no
// idle workers for warm capacity, and nothing is launched there.
func (p *Search) warmRules(given []int64, out *Outcome) WarmRules {
	rules := WarmRules{make([]bool, len(p.Groups)), make([]bool, len(p.Groups))}
	waits := make([]bool, len(p.Groups))
	for i := range p.Groups {
		waits[i] = p.Groups[i].Room(given[i]) >= p.Groups[i].Hosts && p.unservedSuits(out, p.Groups[i].Shape)
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		rules.Keep[i] = true
		rules.Launch[i] = !waits[i] && !g.Trying() && !g.Waiting() &&
			len(p.SharedNodes.UnprovenPools(i)) == 0
		for k := range p.Groups {
			if waits[k] && k != i && p.shares(i, k) {
				rules.Keep[i], rules.Launch[i] = waits[i], false
			}
		}
	}
	if p.Policy.MaxInFlight > 0 && slices.Contains(waits, true) {
		clear(rules.Launch)
	}
	return rules
}

// unservedSuits reports whether some demand that waits, or that is too much for this plan, could use a worker.
func (p *Search) unservedSuits(out *Outcome, s *vector.Shape) bool {
	for at, n := range out.Unserved {
		if n > 0 && p.Requests[at].Suits(s) {
			return true
		}
	}
	waits := func(g *fleet.Gang) bool { return (g.Unplaceable || slices.Contains(out.Gangs, g)) && g.Suits(s) }
	return slices.ContainsFunc(p.Gangs, waits) ||
		slices.ContainsFunc(out.Claims, func(i int) bool { return vector.SuitsAny(p.Claims[i].Items, s) }) ||
		vector.SuitsAny(p.DeferredItems(), s)
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
	if len(p.Warm) == 0 {
		return given, out
	}
	p.WarmRules = p.warmRules(given, &out)
	before := given
	found := p.placeWarm(given, &out, p.WarmRules)
	for range maxFullestRounds {
		if vector.Sum(found.launched) == 0 {
			break
		}
		more := slices.Clone(given)
		for i, n := range found.launched {
			more[i] += n
		}
		again := p.bestRound(more, placing.Fullest)
		if vector.Sum(again.launched) > 0 || !again.asGood(&out) {
			break // demand would be placed in another way, and launched for again
		}
		next := p.placeWarm(more, &again, p.WarmRules)
		if next.free() <= found.free() {
			break // demand would spread over these pods
		}
		given, out, found = more, again, next
	}
	p.Warm = found.entries
	for i := range given {
		if given[i] > before[i] {
			out.warmed = append(out.warmed, WarmLaunch{i, given[i] - before[i]})
		}
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
	p.Costs = cost.New(p.Fleet, p.eachWarmItem)
	for at, base := range out.ledgers {
		l := p.Trial(base)
		l.How = placing.Cheapest
		p.CapRoom(l, given, func(i int) bool { return rules.Launch[i] })
		p.OpenAgain(l, func(i int) bool { return rules.Keep[i] })
		for i, n := range found.launched {
			if n > 0 {
				p.AddLaunched(l, i, n)
			}
		}
		entries := slices.Clone(p.Warm)
		for k := range entries {
			p.placeEntry(l, &entries[k])
		}
		copy(found.launched, l.Launched)
		for k := range entries {
			found.entries[k].merge(&entries[k], at == 0)
		}
		p.Release(l)
	}
	return found
}

// eachWarmItem calls yield with the bundle of each entry that has one.
func (p *Search) eachWarmItem(yield func(*vector.Item) bool) {
	for k := range p.Warm {
		if it := p.Warm[k].Item; it != nil && !yield(it) {
			return
		}
	}
}

// placeEntry finds free capacity for one entry, and launches what is missing.
func (p *Search) placeEntry(l *placing.Ledger, e *WarmEntry) {
	e.Ready, e.Coming, e.Launching, e.Nodes, e.pods = 0, 0, 0, nil, map[int]int64{}
	switch {
	case e.Item != nil:
		p.placeBundles(l, e)
	case e.Group >= 0:
		g := &p.Groups[e.Group]
		vacant := p.TakeVacant(l, e.Group, e.Count)
		e.Ready, e.Coming, e.Launching, e.Nodes = vacant.Joined, vacant.Coming, vacant.Planned, vacant.Nodes
		e.pods[e.Group] = vacant.Coming * g.Hosts
		if replicas := min(e.Missing(), min(l.Room[e.Group], l.Spare)/g.Hosts); replicas > 0 {
			l.Launch(g, replicas*g.Hosts)
		}
	}
}

// placeBundles finds room for the bundles of an entry.
func (p *Search) placeBundles(l *placing.Ledger, e *WarmEntry) {
	l.Traces = l.Traces[:0]
	vacant := p.vacantNodes(l)
	p.Place(l, p.NewBatch(OverWarm, []*vector.Item{e.Item}, l.How))
	for _, t := range l.Traces {
		n := t.Each * t.Count
		switch {
		case t.Planned:
			e.Launching += n
			continue
		case t.Phase == fleet.OnTheWay:
			e.Coming += n
		default:
			e.Ready += n
		}
		if t.Phase == fleet.OnTheWay {
			e.pods[t.Group] += t.Count
			continue
		}
		for _, node := range t.Members {
			if vacant[node] {
				e.Nodes = append(e.Nodes, node)
			}
		}
	}
}

// vacantNodes marks the nodes of groups that are free as a whole.
func (p *Search) vacantNodes(l *placing.Ledger) map[int]bool {
	vacant := map[int]bool{}
	for k := range l.Classes {
		if class := &l.Classes[k]; class.Shape.Group >= 0 && class.Vacant() {
			for _, n := range class.Members {
				vacant[n] = true
			}
		}
	}
	return vacant
}

// WarmLaunched returns how many pods of a group are launched for warm capacity.
func (o *Outcome) WarmLaunched(i int) int64 {
	for _, w := range o.warmed {
		if w.Group == i {
			return w.Pods
		}
	}
	return 0
}

// keepWarm keeps the nodes that are free for warm capacity. It comes last, so that a node that stays for another reason
// is not called warm.
func (p *Search) keepWarm(out *Outcome) {
	for k := range p.Warm {
		for _, n := range p.Warm[k].Nodes {
			if out.Used[n] {
				continue
			}
			if out.Warm == nil {
				out.Warm = make([]int, len(p.Nodes))
			}
			out.Used[n], out.Warm[n] = true, k+1
		}
	}
}

// WarmFor returns the entry for which alone a node stays, or nil.
func (p *Search) WarmFor(out *Outcome, node int) *WarmEntry {
	if out.Warm == nil || out.Warm[node] == 0 {
		return nil
	}
	return &p.Warm[out.Warm[node]-1]
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
