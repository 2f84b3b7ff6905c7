package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

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

// claimOn opens a claim's own ledger: all that is there, whatever is in use, and the limits as they are left on
// another.
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

// gangRetries is how often gangs are placed in another order when some were not served; maxRetriedCrowds bounds how
// many kinds of gangs that is worth it for.
const (
	gangRetries     = 2
	maxRetriedGangs = 100
)

// placeGangs places one kind of gangs after the other, those hardest to place first. When some are left, they go first
// once more: an easy one may have taken what only it could have spared.
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
		slices.SortStableFunc(
			gangs,
			func(a, b *fleet.Gang) int { return vector.CompareBool(b.Accelerated(), a.Accelerated()) },
		)
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

// gangsAsRay orders gangs as Ray does: those with most placement constraints first, then those with most bundles.
func gangsAsRay(gangs []*fleet.Gang) []*fleet.Gang {
	order := slices.Clone(gangs)
	slices.SortStableFunc(order, func(a, b *fleet.Gang) int {
		return cmp.Or(cmp.Compare(boundBundles(b), boundBundles(a)), cmp.Compare(len(b.Bundles), len(a.Bundles)))
	})
	return order
}

// constraints counts bundles that may not be placed without regard to the others.
func boundBundles(g *fleet.Gang) int {
	if g.Strict() {
		return len(g.Bundles)
	}
	return 0
}

// keepFor keeps the nodes that would serve what is not admitted, if they were enough: they are there, and letting go of
// half of what was asked for helps nobody. Nothing is launched for it.
func (p *Search) keepFor(own *placing.Ledger, c *Claim, out *Outcome) {
	if len(c.keeps) == 0 {
		return
	}
	kept := p.Trial(own)
	clear(kept.Room)
	kept.Spare = 0
	p.Place(kept, p.NewBatch(c.Purpose, c.keeps, kept.How))
	out.markUsed(kept)
	p.Release(kept)
}
