package planner

import (
	"cmp"
	"slices"
)

// outcome is what one round of placing all demand comes to.
type outcome struct {
	// launched counts the pods beyond those given, by group.
	launched []int64
	// unserved counts the bundles of each request item that wait still.
	unserved []int64
	gangs    []*gang // not served
	claims   []claim // not served
	used     []bool  // nodes that demand was placed on
	lots     int     // what the ledger held in the end: kinds of nodes, those that the plan launches among them
	log      []entry
	waits    []wait
}

// round places all demand, with pods already planned by group, and launches what is missing.
func (p *planning) round(given []int64) outcome {
	l := p.open(p.base, given)
	out := outcome{used: make([]bool, len(p.nodes))}
	p.launchMinimum(l, given)
	for _, c := range p.claims {
		if !p.placeClaim(l, c, given, &out) {
			out.claims = append(out.claims, c)
		}
	}
	l = p.placeGangs(l, &out)
	b := p.newBatch("", p.requests)
	p.place(l, b)
	out.unserved, out.launched, out.log, out.lots = b.left, l.launched, l.log, len(l.lots)
	out.waits = l.waits
	out.markUsed(l)
	return out
}

// open starts a ledger on which the given pods are on their way. They stand where the next snapshot's pods will
// stand, so that the next plan finds the same places.
func (p *planning) open(lots []lot, given []int64) *ledger {
	l := &ledger{lots: slices.Clone(lots), launched: make([]int64, len(p.groups)), spare: p.spare(given)}
	for i := range p.groups {
		g := &p.groups[i]
		l.room = append(l.room, g.room(given[i]))
		if given[i] > 0 {
			planned := p.freshLot(g, given[i], true)
			at, _ := slices.BinarySearchFunc(l.lots, planned, p.soonestFirst)
			l.lots = slices.Insert(l.lots, at, planned)
		}
	}
	return l
}

// launchMinimum brings every group to its minimum. These pods then serve demand like any other.
func (p *planning) launchMinimum(l *ledger, given []int64) {
	for i := range p.groups {
		g := &p.groups[i]
		short := roundUp(max(0, g.min-g.standing()-given[i]), g.hosts)
		n := min(short, l.room[i], l.spare)
		if n -= n % g.hosts; n > 0 {
			l.lots = append(l.lots, l.launch(g, n))
		}
	}
}

// placeClaim places a claim on total capacities, on a ledger of its own: what runs already counts. When the whole
// claim cannot be had nothing is launched for it, and the nodes it would use are kept all the same: letting go of
// half of what was asked for helps nobody.
func (p *planning) placeClaim(l *ledger, c claim, given []int64, out *outcome) bool {
	own := p.open(p.totals, given)
	for i, n := range l.launched {
		if n > 0 {
			own.lots = append(own.lots, p.freshLot(&p.groups[i], n, true))
		}
	}
	own.room, own.spare = slices.Clone(l.room), l.spare
	b := p.newBatch(c.purpose, c.items)
	p.place(own, b)
	out.markUsed(own)
	if !b.served() {
		return false
	}
	for i, n := range own.launched {
		if n > 0 {
			l.lots = append(l.lots, l.launch(&p.groups[i], n))
		}
	}
	l.log, l.waits = append(l.log, own.log...), append(l.waits, own.waits...)
	return true
}

// placeGangs places one gang after the other. Equal gangs fail together: capacity only shrinks.
func (p *planning) placeGangs(l *ledger, out *outcome) *ledger {
	failed := map[string]bool{}
	for _, g := range p.gangs {
		served := false
		if !failed[g.key] {
			l, served = p.placeGang(l, g)
		}
		if served {
			continue
		}
		out.gangs = append(out.gangs, g)
		// A gang that holds nodes already is bound to them, so its failure says nothing about others.
		failed[g.key] = failed[g.key] || !g.held
	}
	return l
}

func (o *outcome) markUsed(l *ledger) {
	for i := range l.lots {
		if l.lots[i].touched {
			for _, n := range l.lots[i].members {
				o.used[n] = true
			}
		}
	}
}

// Rounds, trials and work bound the search: a budget of work and not of time, so that a plan repeats exactly.
const (
	maxRounds = 8
	minTrials = 8
	maxTrials = 256
	// maxWork counts looks of one item at one lot; some millions take tens of milliseconds. It bounds the clean-up from
	// minTrials on: one round of a thousand shapes over a hundred groups is more than all of it.
	maxWork = 4_000_000
)

// trials is how often a clean-up may place everything once more. One more time costs as much as the last: what the
// plan itself launches stands in the ledger too, and many shapes launch many kinds of nodes.
func (p *planning) trials(last *outcome) int {
	items := len(p.requests) + 1
	for _, c := range p.claims {
		items += len(c.items)
	}
	for _, g := range p.gangs {
		items += len(g.options[0].items)
	}
	return min(max(maxWork/(items*(last.lots+len(p.groups)+1)), minTrials), maxTrials)
}

// settle finds launches that are enough and not more than enough. Greedy placing may serve demand in one order on
// pods that are being chosen and in another on pods that are there; planning again with the launches given, until
// nothing is added, makes sure that the next cycle has nothing to add either.
func (p *planning) settle() ([]int64, outcome) {
	given := make([]int64, len(p.groups))
	out := p.round(given)
	for range maxRounds {
		if sum(out.launched) == 0 {
			break
		}
		for i, n := range out.launched {
			given[i] += n
		}
		out = p.round(given)
	}
	return p.drop(given, out)
}

// drop takes back every replica without which all is served as well. In a cluster so large that the budget ends
// first, some may stay.
func (p *planning) drop(given []int64, out outcome) ([]int64, outcome) {
	if sum(given) == 0 {
		return given, out
	}
	trials := p.trials(&out)
	for dropped := true; dropped; {
		dropped = false
		for _, i := range p.dearestFirst() {
			for given[i] > 0 && trials > 0 {
				trials--
				less := slices.Clone(given)
				less[i] -= p.groups[i].hosts
				again := p.round(less)
				if sum(again.launched) > 0 || !again.asGood(&out) {
					break
				}
				given, out, dropped = less, again, true
			}
		}
	}
	return given, out
}

// dearestFirst orders groups by what a pod holds that is scarce.
func (p *planning) dearestFirst() []int {
	order := make([]int, len(p.groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := p.groups[a].shape, p.groups[b].shape
		if c := compareBool(y.accelerated, x.accelerated); c != 0 {
			return c
		}
		return cmp.Compare(p.size(y.total), p.size(x.total))
	})
	return order
}

// asGood reports whether o serves everything that other serves.
func (o *outcome) asGood(other *outcome) bool {
	for i, n := range o.unserved {
		if n > other.unserved[i] {
			return false
		}
	}
	return len(o.claims) <= len(other.claims) && subset(o.gangs, other.gangs)
}

func subset(few, many []*gang) bool {
	return !slices.ContainsFunc(few, func(g *gang) bool { return !slices.Contains(many, g) })
}
