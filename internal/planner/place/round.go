package place

import (
	"cmp"
	"slices"
)

// round places all demand, with pods already planned by group, and launches what is missing by the given strategy.
func (p *Search) round(given []int64, how Strategy) Outcome {
	return p.roundIn(given, order{how: how})
}

func (p *Search) roundIn(given []int64, in order) Outcome {
	l := p.open(p.Base, given)
	l.how = in.how
	if in.stepwise {
		l.hide()
		p.revealMinimum(l)
	}
	out := Outcome{Used: make([]bool, len(p.Nodes))}
	p.launchMinimum(l, given)
	for i, c := range p.Claims {
		if left := p.placeClaim(l, c, given, &out); left != nil {
			out.Claims, out.claimed = append(out.Claims, i), append(out.claimed, left)
		}
	}
	b := p.newBatch("", p.Requests, l.how)
	if in.unserved != nil {
		b.putFirst(in.unserved)
	}
	if in.requestsFirst {
		p.place(l, b)
	}
	l = p.placeGangs(l, in, &out)
	if !in.requestsFirst {
		p.place(l, b)
	}
	out.Unserved, out.launched, out.Log, out.classes = b.left, l.launched, l.log, len(l.classes)
	out.Runs = l.runs
	out.markUsed(l)
	if len(p.Warm) > 0 {
		out.ledgers = append([]*Ledger{l}, out.ledgers...)
	}
	for _, n := range p.overdueNodes {
		if out.Used[n] {
			out.kept++
		}
	}
	return out
}

// placeClaim places a claim on total capacities, on a ledger of its own, because running work counts. If the whole
// claim cannot be served, but for what is set aside, nothing is launched for it. The nodes that it would use are kept
// anyway: releasing half of what was requested helps nobody. It returns the unserved bundles of each item, or nil if
// there are none.
func (p *Search) placeClaim(l *Ledger, c Claim, given []int64, out *Outcome) []int64 {
	if c.Refused {
		return c.counts()
	}
	own := p.claimOn(l, c, given)
	if l.stepwise {
		own.hide()
		p.revealMinimum(own)
	}
	lifted := p.uncapped(own)
	b := p.newBatch(c.Purpose, c.Items, l.how)
	p.place(own, b)
	out.markUsed(own)
	p.keepFor(own, &c, out)
	if !b.served() && !p.servedOn(lifted, c) {
		return c.counts()
	}
	if len(p.Warm) > 0 {
		out.ledgers = append(out.ledgers, own)
	}
	if l.stepwise {
		left := own.hiddenOf(len(p.Groups))
		for i, n := range l.hiddenOf(len(p.Groups)) {
			l.reveal(i, n-left[i])
		}
	}
	for i, n := range own.launched {
		if n > 0 {
			l.classes = append(l.classes, l.launch(&p.Groups[i], n)...)
		}
	}
	l.log = append(l.log, own.log...)
	if b.served() {
		return nil
	}
	l.reserveRest(lifted.launched, own.launched)
	return b.left
}

// claimOn opens a claim's own ledger: all existing capacity, in use or not, that the items that are set
// aside leave, with the limits that another ledger has left.
func (p *Search) claimOn(l *Ledger, c Claim, given []int64) *Ledger {
	own := p.open(c.totals, given)
	own.how = l.how
	for i, n := range l.launched {
		if n > 0 {
			own.classes = append(own.classes, p.hostClasses(i, n)...)
		}
	}
	own.limits.copyFrom(&l.limits)
	return own
}

// placeGangs places one kind of gang after the other, those hardest to place first.
func (p *Search) placeGangs(l *Ledger, in order, out *Outcome) *Ledger {
	if len(p.placeable) == 0 {
		return l
	}
	gangs := p.placeable
	if l.how.raysOrder() {
		gangs = gangsAsRay(gangs)
	}
	if in.accelerated {
		gangs = slices.Clone(gangs)
		slices.SortStableFunc(
			gangs,
			func(a, b *Gang) int { return CompareBool(b.accelerated(), a.accelerated()) },
		)
	}
	l, out.Gangs = p.placeInOrder(l, gangs)
	slices.SortFunc(out.Gangs, func(a, b *Gang) int { return a.Number - b.Number })
	return l
}

// placeInOrder places gangs on a copy of the ledger and returns the unserved ones. Equal gangs fail together, because
// capacity only shrinks.
func (p *Search) placeInOrder(from *Ledger, gangs []*Gang) (*Ledger, []*Gang) {
	l := p.trial(from)
	var left []*Gang
	failed := map[string]bool{}
	for len(gangs) > 0 {
		var front []*Gang
		front, gangs = cutIdentical(gangs)
		served, key := 0, front[0].Key
		if !failed[key] {
			l, served = p.placeIdentical(l, front)
			if own, n := p.placeBeyondCaps(l, front[served:]); n > 0 {
				l, served = own, served+n
			}
		}
		if served == len(front) {
			continue
		}
		left = append(left, front[served:]...)
		// A gang that already holds nodes is bound to them, so its failure does not apply to others.
		failed[key] = failed[key] || !front[0].Held
	}
	return l, left
}

// gangsAsRay orders gangs as Ray does: most placement constraints first, then most bundles.
func gangsAsRay(gangs []*Gang) []*Gang {
	order := slices.Clone(gangs)
	slices.SortStableFunc(order, func(a, b *Gang) int {
		return cmp.Or(cmp.Compare(boundBundles(b), boundBundles(a)), cmp.Compare(len(b.Bundles), len(a.Bundles)))
	})
	return order
}

// boundBundles counts bundles whose placement depends on the others.
func boundBundles(g *Gang) int {
	if g.strict() {
		return len(g.Bundles)
	}
	return 0
}

// keepFor keeps the nodes that would serve what is not admitted. They exist already, and releasing half of what was
// requested helps nobody. Nothing is launched for it.
func (p *Search) keepFor(own *Ledger, c *Claim, out *Outcome) {
	if len(c.keeps) == 0 {
		return
	}
	kept := p.trial(own)
	clear(kept.room)
	kept.spare = 0
	p.place(kept, p.newBatch(c.Purpose, c.keeps, kept.how))
	out.markUsed(kept)
	p.release(kept)
}
