package place

import (
	"cmp"
	"slices"
)

// round places all demand, with pods already planned by group, and launches what is missing.
func (p *Search) round(given []int64, in order) Outcome {
	l := p.open(p.Base, given)
	l.how = in.how
	if in.stepwise {
		l.hide()
		p.revealMinimum(l)
	}
	out := Outcome{Stays: make([]Stay, len(p.Nodes))}
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
		if out.Stays[n] != 0 {
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
	b := p.newBatch(c.Purpose, c.Items, l.how)
	p.place(own, b)
	out.markUsed(own)
	p.keepFor(own, &c, out)
	if !b.served() && !c.Delayed {
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
	return b.left
}

// claimOn opens a claim's own ledger: all existing capacity, in use or not, that the items that are set
// aside leave, with the limits that another ledger has left.
func (p *Search) claimOn(l *Ledger, c Claim, given []int64) *Ledger {
	own := p.open(c.totals, given)
	own.how = l.how
	for i, n := range l.launched {
		if n > 0 {
			own.classes = append(own.classes, hostClasses(&p.Groups[i], n, true)...)
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
	if len(in.gangs) > 0 {
		gangs = slices.Clone(gangs)
		slices.SortStableFunc(gangs, func(a, b *Gang) int {
			return CompareBool(slices.Contains(in.gangs, b), slices.Contains(in.gangs, a))
		})
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
	for front := range kindsOf(gangs) {
		served, key := 0, front[0].Key
		if !failed[key] {
			l, served = p.placeIdentical(l, front)
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
	boundBundles := func(g *Gang) int { // those whose placement depends on the others
		if g.strict() {
			return len(g.Bundles)
		}
		return 0
	}
	order := slices.Clone(gangs)
	slices.SortStableFunc(order, func(a, b *Gang) int {
		return cmp.Or(cmp.Compare(boundBundles(b), boundBundles(a)), cmp.Compare(len(b.Bundles), len(a.Bundles)))
	})
	return order
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

// Outcome is the result of one round of placing all demand.
type Outcome struct {
	// launched counts the pods in addition to those given, by group.
	launched []int64
	// Unserved counts the waiting bundles of each request item.
	Unserved []int64
	Gangs    []*Gang // not served
	Claims   []int   // not served, by number
	// unserved bundles of each item of those claims: all, unless the caps allow a part to be launched
	claimed [][]int64
	// Stays says what keeps each node. kept counts those that would otherwise stop as idle.
	Stays   []Stay
	kept    int
	Runs    []Run
	classes int // node classes on the ledger at the end, including launched ones
	// Log lists what is placed on pods that have not joined. In the end, it has only those that this plan launches, and
	// Waits those that were requested before.
	Log, Waits []Placement
	// Places are the places of the bundles of REST requests, by the key of their item.
	Places map[string][]Placement
	// ledgers are that of the demand and those of the calls of request_resources, if warm capacity is placed on what
	// they leave. Warmed counts its launches by group.
	ledgers []*Ledger
	Warmed  []int64
}

// Stay is what keeps a node from being stopped as idle: the first of these that does; 0 if nothing. Each value from
// KeptWarm is that of one warm entry, by number.
type Stay int32

const (
	Needed   Stay = iota + 1 // demand is placed on it
	HeldOver                 // it serves demand until the replacement has joined Ray
	Spared                   // demand that is not planned now could need it
	KeptWarm
)

func (o *Outcome) markUsed(l *Ledger) {
	for i := range l.classes {
		if l.classes[i].touched {
			for _, n := range l.classes[i].members {
				o.Stays[n] = Needed
			}
		}
	}
}

// perfect reports whether nothing can be better: all demand is served, nothing is launched for it, and no node is kept
// from stopping.
func (o *Outcome) perfect() bool { return Sum(o.launched) == 0 && o.served() && o.kept == 0 }

// fallbacks counts the gangs that use another choice than their first.
func (o *Outcome) fallbacks() (n int) {
	for _, r := range o.Runs {
		if r.Option > 0 {
			n += len(r.Gangs)
		}
	}
	return n
}

// served reports whether nothing is waiting.
func (o *Outcome) served() bool {
	return Sum(o.Unserved) == 0 && len(o.Gangs)+len(o.Claims) == 0
}

// servesAllOf reports whether no request has more unserved bundles than in other.
func (o *Outcome) servesAllOf(other *Outcome) bool {
	for i, n := range o.Unserved {
		if n > other.Unserved[i] {
			return false
		}
	}
	return true
}

// asGood reports whether o serves everything that other serves.
func (o *Outcome) asGood(other *Outcome) bool {
	return o.servesAllOf(other) && len(o.Claims) <= len(other.Claims) && subset(o.Gangs, other.Gangs)
}

func subset(few, many []*Gang) bool {
	if len(few) == 0 {
		return true
	}
	known := make(map[*Gang]bool, len(many))
	for _, g := range many {
		known[g] = true
	}
	return !slices.ContainsFunc(few, func(g *Gang) bool { return !known[g] })
}

// LeftOf counts the unserved bundles of each item of a claim.
func (o *Outcome) LeftOf(i int, c Claim) []int64 {
	if at := slices.Index(o.Claims, i); at >= 0 {
		return o.claimed[at]
	}
	return make([]int64, len(c.Items))
}

// shareAmongIdentical separates what waits from what is launched. It divides what was booked under the items of the
// first gang among the gangs that were placed together: existing nodes go to those in front, launches to those at the
// end.
func (o *Outcome) shareAmongIdentical() {
	shared := map[*Item]*sharing{}
	for _, r := range o.Runs {
		if len(r.Gangs) < 2 {
			continue
		}
		for i, it := range r.Gangs[0].Options[r.Option] {
			shared[it] = &sharing{r, i, it.Request.Count, it.Request.Count * int64(len(r.Gangs))}
		}
	}
	all := o.Log
	o.Log = nil
	for _, planned := range []bool{true, false} {
		for _, e := range all {
			if e.Planned != planned {
				continue
			}
			book := func(own *Item, n int64) {
				e.Item, e.Count = own, n
				if planned {
					o.Log = append(o.Log, e)
				} else {
					o.Waits = append(o.Waits, e)
				}
			}
			if s := shared[e.Item]; s != nil {
				s.deal(e.Count, book)
			} else {
				book(e.Item, e.Count)
			}
		}
	}
}

// sharing divides what was booked under one item among gangs that were placed together.
type sharing struct {
	run  Run
	item int
	each int64
	left int64 // unassigned bundles, counted from the last one
}

func (s *sharing) deal(n int64, to func(own *Item, n int64)) {
	for n > 0 && s.left > 0 {
		g := (s.left - 1) / s.each
		part := min(n, s.left-g*s.each)
		to(s.run.Gangs[g].Options[s.run.Option][s.item], part)
		n, s.left = n-part, s.left-part
	}
}
