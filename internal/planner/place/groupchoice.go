package place

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Strategy is how new nodes are chosen. No strategy is best for every demand, so a plan tries several.
type Strategy int

const (
	// fullest chooses the nodes that are filled best, as Ray does.
	fullest Strategy = iota
	// cheapest chooses the nodes that serve most for their cost.
	cheapest
	// fewest chooses the nodes that serve most, for when the number of pods is limited.
	fewest
	// asRay places everything in Ray's order, also on existing nodes.
	asRay
	// roomiest is like asRay, but gangs use the nodes with the most room.
	roomiest
)

// raysOrder reports whether demand is placed in Ray's order.
func (how Strategy) raysOrder() bool { return how >= asRay }

// launchBest repeatedly launches a replica of the group that waiting demand fills best. It repeats a pattern as often
// as possible, so the work does not depend on the counts.
func (p *Search) launchBest(l *Ledger, b *Batch) {
	if b.join > 0 || b.served() {
		return
	}
	patterns := make([]*pattern, len(p.Groups))
	fair := p.fairPrices(l, b)
	for !b.served() {
		best := -1
		for i := range p.Groups {
			g := &p.Groups[i]
			if min(l.room[i], l.spare) < g.Hosts || !b.within.Admits(g.Shape.Labels) {
				continue
			}
			if patterns[i] == nil || !patterns[i].holds(b) {
				pat := p.newPattern(b, g.Shape, g.Shape.Total, g.others, g.Hosts, b.quota(&NodeClass{}))
				p.rate(&pat, l.how, b, i, g.Hosts, fair)
				patterns[i] = &pat
			}
			if len(patterns[i].uses) > 0 && (best < 0 || l.how.prefers(patterns[i], i, patterns[best], best)) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		p.launchPattern(l, b, &p.Groups[best], patterns[best])
	}
}

// fairPrices returns what one bundle of each item costs on the cheapest group that serves it, if a node of the group
// held nothing else. The number of bundles that wait does not matter, because the rest of the node serves others.
func (p *Search) fairPrices(l *Ledger, b *Batch) []float64 {
	if l.how != cheapest {
		return nil
	}
	fair, most := make([]float64, len(b.items)), int64(MaxCount)
	if b.apart > 0 {
		most = b.apart
	}
	for at, it := range b.items {
		for i := range p.Groups {
			g := &p.Groups[i]
			if b.left[at] == 0 || l.room[i] < g.Hosts && !l.holdsBack(i) || it.Rank[g.Shape.Labels] == NoMatch {
				continue
			}
			n := g.Shape.Total.Times(it.Need, most)
			if others := cmp.Or(g.others, g.Shape); it.Rank[others.Labels] != NoMatch {
				n += others.Total.Times(it.Need, most) * (g.Hosts - 1)
			}
			if n > 0 {
				if each := p.Costs.PerReplica[i] / float64(n); fair[at] == 0 || each < fair[at] {
					fair[at] = each
				}
			}
		}
	}
	return fair
}

// rate adds to the score of a pattern what the strategy optimizes.
func (p *Search) rate(pat *pattern, how Strategy, b *Batch, group int, hosts int64, fair []float64) {
	switch how {
	case cheapest:
		var worth float64
		for _, u := range pat.uses {
			worth += float64(u.count) * fair[u.item]
		}
		share := float64(hosts) / float64(p.Groups[group].Hosts)
		pat.score.thrift = worth / max(p.Costs.PerReplica[group]*share, 1e-9)
	case fewest:
		for _, u := range pat.uses {
			pat.score.whole += float64(u.count) * p.Needed(b.items[u.item])
		}
		pat.score.most = pat.score.whole / float64(hosts)
	}
}

func (p *Search) launchPattern(l *Ledger, b *Batch, g *Group, pat *pattern) {
	replicas := pat.times(b, min(l.room[g.Shape.group], l.spare)/g.Hosts)
	launched := l.launch(g, g.Hosts*replicas)
	for _, f := range pat.hosts {
		class := launched[0]
		class.Shape, class.free, class.count = f.shape, f.shape.Total, f.count*replicas
		if len(f.take) > 0 {
			class.free, class.touched = f.after, true
			class.named = b.named(f.take)
		}
		b.mark(&class, f.take)
		l.classes = append(l.classes, class)
		l.note(b, &class, f.take, true, true)
	}
	for _, u := range pat.uses {
		b.left[u.item] -= u.count * replicas
	}
}

// pattern is how waiting demand would fill one new replica of a group, or one node on its way. It is the unit of
// choice.
type pattern struct {
	hosts []filled
	// uses counts the bundles of each item on the whole replica.
	uses  []portion
	score score
}

// portion is how many bundles of one item go onto a node.
type portion struct {
	item  int
	count int64
}

// filled is a number of equal hosts of a replica.
type filled struct {
	shape *Shape
	count int64
	take  []portion
	after Vector
}

// fill packs waiting demand onto one node, largest items first, up to quota bundles.
func (b *Batch) fill(free Vector, labels int, left []int64, quota int64) ([]portion, Vector) {
	var take []portion
	free = slices.Clone(free)
	for k := range b.items {
		i := b.at(k)
		if left[i] == 0 {
			continue
		}
		it := b.items[i]
		if it.Rank[labels] == NoMatch || free.lacks(it.Need) {
			continue
		}
		n := free.Times(it.Need, min(left[i], quota))
		if n == 0 {
			continue
		}
		take = append(take, portion{item: i, count: n})
		free.subtract(it.Need, n)
		if quota -= n; quota == 0 {
			break
		}
	}
	return take, free
}

// newPattern fills a number of hosts in turn, each with at most quota bundles: the first of a shape, the rest of the
// same or of others. It fills equal hosts at once.
func (p *Search) newPattern(b *Batch, s *Shape, free Vector, others *Shape, hosts, quota int64) pattern {
	var pat pattern
	if hosts == 1 {
		take, after := b.fill(free, s.Labels, b.left, quota)
		pat.hosts, pat.uses = []filled{{s, 1, take, after}}, take
	} else {
		pat.hosts, pat.uses = b.fillHosts(s, free, others, hosts, quota)
	}
	if len(pat.uses) == 0 {
		return pat
	}
	pat.score = p.score(b, s, free, hosts, pat.uses)
	return pat
}

// fillHosts fills a number of hosts in turn, and returns what they take together.
func (b *Batch) fillHosts(s *Shape, free Vector, others *Shape, hosts, quota int64) ([]filled, []portion) {
	var all []filled
	left := append(b.scratch[:0], b.left...)
	b.scratch = left
	for rest := hosts; rest > 0; {
		count := rest
		switch {
		case others != nil && rest == hosts:
			count = 1
		case others != nil:
			s, free = others, others.Total
		}
		take, after := b.fill(free, s.Labels, left, quota)
		for _, t := range take {
			count = min(count, left[t.item]/t.count)
		}
		all = append(all, filled{s, count, take, after})
		for _, t := range take {
			left[t.item] -= t.count * count
		}
		rest -= count
	}
	var uses []portion
	for i := range left {
		if n := b.left[i] - left[i]; n > 0 {
			uses = append(uses, portion{item: i, count: n})
		}
	}
	return all, uses
}

// holds reports whether filling again would give the same pattern, although less demand may be waiting now.
func (pat *pattern) holds(b *Batch) bool { return pat.times(b, 1) == 1 }

// times returns how often the pattern can be repeated, up to limit.
func (pat *pattern) times(b *Batch, limit int64) int64 {
	for _, u := range pat.uses {
		limit = min(limit, b.left[u.item]/u.count)
	}
	return limit
}

// score rates a pattern; better compares its fields in this order. rank, sparing, kinds, least and mean are Ray's score
// (ray scheduler.py, _compute_score) with comparable units for different resources.
type score struct {
	rank int     // preference of the first bundle's matching selector; a larger rank is earlier in the list
	most float64 // served per pod, if the number of pods is limited
	// the same for the whole replica: of two equals the larger one first, because later there may be no room for it
	whole   float64
	sparing bool // no accelerator stays idle next to work that needs none
	// The group's preference comes before the cost of its nodes.
	preference Preference
	thrift     float64 // served per cost
	kinds      int     // resources in use
	least      float64
	mean       float64
	room       float64 // free before, if a gang must leave the nodes that fit others tightly
	cloud      float64 // Ray's record of the cloud's availability
}

// better compares scores: positive if a is better than b.
func better(a, b score) int {
	return cmp.Or(
		CompareBool(a.preference.Known, b.preference.Known),
		cmp.Compare(a.most, b.most),
		cmp.Compare(a.whole, b.whole),
		cmp.Compare(a.rank, b.rank),
		CompareBool(a.sparing, b.sparing),
		a.preference.compare(b.preference),
		CompareNearly(a.thrift, b.thrift),
		cmp.Compare(a.kinds, b.kinds),
		cmp.Compare(a.least, b.least),
		cmp.Compare(a.mean, b.mean),
		cmp.Compare(a.cloud, b.cloud),
	)
}

// betterForRay compares scores as Ray does: how well a node is filled comes before its group's preference.
func betterForRay(a, b score) int {
	return cmp.Or(
		CompareBool(a.preference.Known, b.preference.Known),
		cmp.Compare(a.rank, b.rank),
		CompareBool(a.sparing, b.sparing),
		cmp.Compare(a.room, b.room),
		cmp.Compare(a.kinds, b.kinds),
		cmp.Compare(a.least, b.least),
		cmp.Compare(a.mean, b.mean),
		a.preference.compare(b.preference),
		cmp.Compare(a.cloud, b.cloud),
	)
}

// score rates a replica with the bundles placed on it. A share u in use of a resource with total t counts t·u³, so
// large nodes filled well win over small ones, and half-empty ones lose.
func (p *Search) score(b *Batch, s *Shape, free Vector, hosts int64, uses []portion) score {
	used := make([]float64, len(p.Names))
	named := make([]bool, len(p.Names))
	for i := range used {
		used[i] = p.worth(i, s.Total[i]-free[i]) * float64(hosts)
	}
	sc := score{sparing: !s.Accelerated}
	for _, u := range uses {
		it := b.items[u.item]
		sc.sparing = sc.sparing || it.accelerator
		for _, t := range it.Need {
			used[t.Resource] += p.worth(t.Resource, t.Amount) * float64(u.count)
			named[t.Resource] = true
		}
	}
	first := b.items[uses[0].item]
	if len(first.Request.Selectors) > 0 {
		sc.rank = first.Alternatives - first.Rank[s.Labels]
	}
	p.scoreUse(&sc, b, s.Total, hosts, used, named)
	sc.preference, sc.cloud = Preference{Known: true, Recoverable: 1}, 1
	if s.group >= 0 {
		g := &p.Groups[s.group]
		sc.preference, sc.cloud = g.Preference(), model.AmountOr(g.CloudAvailability, 1)
	}
	return sc
}

func (p *Search) scoreUse(sc *score, b *Batch, total Vector, hosts int64, used []float64, named []bool) {
	var sum, least float64
	terms := 0
	for i, amount := range p.Named(total) {
		if amount <= 0 {
			continue
		}
		if named[i] {
			sc.kinds++
		}
		if model.IsMemory(p.Names[i]) && !b.memory {
			continue // every node has memory and nothing asks for it, so it is not wasted
		}
		whole := p.worth(i, amount) * float64(hosts)
		share := used[i] / whole
		value := whole * share * share * share
		if terms == 0 || value < least {
			least = value
		}
		sum += value
		terms++
	}
	if terms > 0 {
		sc.least, sc.mean = least, sum/float64(terms)
	}
}

// patternKey is what a pattern depends on, while a batch is placed.
type patternKey struct {
	shape *Shape
	named nameSet
	free  *raydemand.Amount
}

// useBest places waiting demand on the nodes that it fills best, one kind of node after the other: those that are
// hidden, or the others. In Ray's order, it considers all of them, else only those on their way that are untouched. It
// keeps a pattern as long as filling again would give the same, and fills all equal nodes with it, so that it makes no
// difference which of them have joined.
func (p *Search) useBest(l *Ledger, b *Batch, hidden bool) {
	kept, ray := map[patternKey]*pattern{}, l.how.raysOrder()
	var fair []float64
	if hidden {
		fair = p.fairPrices(l, b)
	}
	offered := func(class *NodeClass) bool {
		return class.hidden == hidden && b.admits(class) &&
			(ray || !class.touched && (hidden || class.phase == OnTheWay))
	}
	for !b.served() {
		best, at := (*pattern)(nil), -1
		for i := range l.classes {
			class := &l.classes[i]
			if !offered(class) {
				continue
			}
			key := patternKey{shape: class.Shape, named: class.named}
			if len(class.free) > 0 {
				key.free = &class.free[0]
			}
			pat := kept[key]
			if pat == nil || !pat.holds(b) {
				made := p.newPattern(b, class.Shape, class.free, nil, 1, b.quota(class))
				switch {
				case ray:
					p.credit(&made, l.how, b, class)
				case hidden:
					p.rate(&made, l.how, b, class.Shape.group, 1, fair)
				}
				pat = &made
				kept[key] = pat
			}
			if len(pat.uses) > 0 && (at < 0 || l.how.prefers(pat, class.Shape.group, best, l.classes[at].Shape.group)) {
				best, at = pat, i
			}
		}
		if at < 0 {
			return
		}
		for like := l.classes[at]; at < len(l.classes) && best.holds(b); at++ {
			class := &l.classes[at]
			if class.Shape == like.Shape && class.named == like.named && offered(class) &&
				slices.Equal(class.free, like.free) {
				l.take(at, b, best.times(b, class.count), best.uses)
			}
		}
	}
}

// prefers compares by score, then by group number, which is the order of names.
func (how Strategy) prefers(a *pattern, groupA int, b *pattern, groupB int) bool {
	order := better(a.score, b.score)
	if how.raysOrder() {
		order = betterForRay(a.score, b.score)
	}
	return order > 0 || order == 0 && groupA < groupB
}

// nameSet is a set of resources by number in the catalog; it leaves out numbers from 64.
type nameSet uint64

func (b *Batch) named(uses []portion) (names nameSet) {
	for _, u := range uses {
		for _, t := range b.items[u.item].Need {
			names |= 1 << t.Resource
		}
	}
	return names
}

// credit adds to the score what this plan has already placed on the node, as Ray does.
func (p *Search) credit(pat *pattern, how Strategy, b *Batch, class *NodeClass) {
	if how == roomiest && b.turn > 0 {
		pat.score.room = p.holding(class.free)
	}
	pat.score.kinds = 0
	names := class.named | b.named(pat.uses)
	for i, amount := range p.Named(class.Shape.Total) {
		if amount > 0 && names&(1<<i) != 0 {
			pat.score.kinds++
			pat.score.sparing = pat.score.sparing || raydemand.IsUnitInstance(p.Names[i])
		}
	}
}
