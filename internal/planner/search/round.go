package search

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Outcome is what one round of placing all demand comes to.
type Outcome struct {
	// launched counts the pods beyond those given, by group.
	launched []int64
	// Unserved counts the bundles of each request item that wait still.
	Unserved []int64
	Gangs    []*fleet.Gang // not served
	Claims   []int         // not served, by number
	claimed  [][]int64     // bundles of each item of those that are left: all, unless a wave launches a part
	Used     []bool        // nodes that demand was placed on
	kept     int           // those of them that would leave as idle
	HeldOver []bool        // nodes that demand is to leave, and that stay until it has; nil where there are none
	joinable bool          // some of what it launches could have been chosen jointly
	// reordered: found in another order than the first, because that is better.
	reordered bool
	Runs      []placing.Run
	classes   int // what the ledger held in the end: kinds of nodes, those that the plan launches among them
	Log       []placing.Entry
	Waits     []placing.Wait
}

// round places all demand, with pods already planned by group, and launches what is missing in the given way.
func (p *Search) round(given []int64, how placing.Strategy) Outcome {
	return p.roundIn(given, order{how: how})
}

func (p *Search) roundIn(given []int64, in order) Outcome {
	l := p.Open(p.Base, given)
	l.How = in.how
	if in.stepwise {
		l.Hide()
		p.RevealMinimum(l)
	}
	out := Outcome{Used: make([]bool, len(p.Nodes))}
	p.LaunchMinimum(l, given)
	for i, c := range p.Claims {
		if left := p.placeClaim(l, c, given, &out); left != nil {
			out.Claims, out.claimed = append(out.Claims, i), append(out.claimed, left)
		}
	}
	b := p.NewBatch("", p.Requests, l.How)
	if in.requestsFirst {
		p.Place(l, b)
	}
	l = p.placeGangs(l, in, &out)
	if !in.requestsFirst {
		p.Place(l, b)
	}
	out.Unserved, out.launched, out.Log, out.classes = b.Left, l.Launched, l.Log, len(l.Classes)
	out.Waits, out.Runs, out.joinable = l.Waits, l.Runs, l.Joinable
	out.markUsed(l)
	for _, n := range p.overdueNodes {
		if out.Used[n] {
			out.kept++
		}
	}
	return out
}

// placeClaim places a claim on total capacities, on a ledger of its own: what runs already counts. When the whole
// claim cannot be had nothing is launched for it, and the nodes it would use are kept all the same: letting go of
// half of what was asked for helps nobody. It returns the bundles of each item that are left, nil when none are.
func (p *Search) placeClaim(l *placing.Ledger, c Claim, given []int64, out *Outcome) []int64 {
	if c.Refused {
		return c.counts()
	}
	own := p.claimOn(l, given)
	if l.Stepwise {
		own.Hide()
		p.RevealMinimum(own)
	}
	lifted := p.Uncapped(own)
	b := p.NewBatch(c.Purpose, c.Items, l.How)
	p.Place(own, b)
	out.markUsed(own)
	p.keepFor(own, &c, out)
	l.Joinable = l.Joinable || own.Joinable
	if !b.Served() && !p.servedOn(lifted, c) {
		return c.counts()
	}
	if l.Stepwise {
		left := own.HiddenOf(len(p.Groups))
		for i, n := range l.HiddenOf(len(p.Groups)) {
			l.Reveal(i, n-left[i])
		}
	}
	for i, n := range own.Launched {
		if n > 0 {
			l.Classes = append(l.Classes, l.Launch(&p.Groups[i], n))
		}
	}
	l.Log, l.Waits = append(l.Log, own.Log...), append(l.Waits, own.Waits...)
	if b.Served() {
		return nil
	}
	l.ReserveRest(lifted.Launched, own.Launched)
	return b.Left
}

// claimOn opens a claim's own ledger: all that is there, whatever is in use, and the limits as they are left on another.
func (p *Search) claimOn(l *placing.Ledger, given []int64) *placing.Ledger {
	own := p.Open(p.totals, given)
	own.How = l.How
	for i, n := range l.Launched {
		if n > 0 {
			own.Classes = append(own.Classes, p.NewClass(&p.Groups[i], n, true))
		}
	}
	own.Room, own.Spare = slices.Clone(l.Room), l.Spare
	own.Taken, own.Pods = slices.Clone(l.Taken), slices.Clone(l.Pods)
	own.InFlightCaps.CopyFrom(&l.InFlightCaps)
	return own
}

// gangRetries is how often gangs are placed in another order when some were not served; maxRetriedCrowds bounds how many
// kinds of gangs that is worth it for.
const (
	gangRetries     = 2
	maxRetriedGangs = 100
)

// placeGangs places one kind of gangs after the other, those hardest to place first. When some are left, they go first once
// more: an easy one may have taken what only it could have spared.
func (p *Search) placeGangs(l *placing.Ledger, in order, out *Outcome) *placing.Ledger {
	if len(p.placeable) == 0 {
		return l
	}
	gangs := p.placeable
	if l.How.RaysOrder() {
		gangs = gangsAsRay(gangs)
	}
	if in.accelerated {
		gangs = slices.Clone(gangs)
		slices.SortStableFunc(gangs, func(a, b *fleet.Gang) int { return vector.CompareBool(b.Accelerated(), a.Accelerated()) })
	}
	best, failed := p.placeInOrder(l, gangs)
	for retry := 0; retry < gangRetries && len(failed) > 0 && p.distinctGangs <= maxRetriedGangs; retry++ {
		order := slices.Clone(failed)
		for _, g := range gangs {
			if !slices.Contains(failed, g) {
				order = append(order, g)
			}
		}
		other, left := p.placeInOrder(l, order)
		if len(left) >= len(failed) {
			p.Release(other)
			break
		}
		p.Release(best)
		best, failed = other, left
	}
	slices.SortFunc(failed, func(a, b *fleet.Gang) int { return a.Number - b.Number })
	out.Gangs = failed
	return best
}

// placeInOrder places gangs on a copy of the ledger and returns those that are not served. Equal gangs fail together:
// capacity only shrinks.
func (p *Search) placeInOrder(from *placing.Ledger, gangs []*fleet.Gang) (*placing.Ledger, []*fleet.Gang) {
	l := p.Trial(from)
	var left []*fleet.Gang
	failed := map[string]bool{}
	for len(gangs) > 0 {
		var front []*fleet.Gang
		front, gangs = fleet.CutIdentical(gangs)
		if front[0].Deferred {
			left = append(left, front...)
			continue
		}
		served, key := 0, front[0].Key
		if !failed[key] {
			l, served = p.PlaceIdentical(l, front)
			if own, n := p.PlaceBeyondCaps(l, front[served:]); n > 0 {
				l, served = own, served+n
			}
		}
		if served == len(front) {
			continue
		}
		left = append(left, front[served:]...)
		// A gang that holds nodes already is bound to them, so its failure says nothing about others.
		failed[key] = failed[key] || !front[0].Held
	}
	return l, left
}

func (o *Outcome) markUsed(l *placing.Ledger) {
	for i := range l.Classes {
		if l.Classes[i].Touched {
			for _, n := range l.Classes[i].Members {
				o.Used[n] = true
			}
		}
	}
}
